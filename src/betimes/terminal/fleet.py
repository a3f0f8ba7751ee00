"""A network of brokers on one machine: one process each, started, restarted after a crash, and stopped.

Every broker runs as `betimes broker` with a configuration file of its own. They share a secret that is
generated for the run.
"""

from __future__ import annotations

import json
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from betimes.model.errors import BetimesError
from betimes.model.topology import Link
from betimes.terminal.parent import child_options

START_S_MAX = 180.0  # many brokers start at once on a small machine, and may compile kernels first
STOP_S_MAX = 5.0
BROKERS_MAX = 64  # a process takes some hundred megabytes
RESTARTS_MAX = 5  # of one broker; then it stays down
HOST = "127.0.0.1"
FREE_PORTS = range(22_000, 32_000)  # systems do not use these as ephemeral ports


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The brokers with their ports, the links between them, and their settings."""

    ports: Mapping[str, int]
    links: tuple[Link, ...]
    host: str = HOST  # where brokers listen for clients
    strategy: str = "late-binding"
    is_limited: bool = True  # links have the rates of the topology
    settings: Mapping[str, object] = field(default_factory=dict)  # of every broker, top-level keys
    own_settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # of one broker, by name
    options: tuple[str, ...] = ()  # of every command line
    fetch: tuple[str, ...] = ()  # topics that every broker keeps, wherever they are published
    stores: Path | None = None  # a directory for the stores of all brokers


def free_ports(count: int, among: range = FREE_PORTS) -> list[int]:
    """Return ports that are free now, of a range that has no ephemeral ports."""
    with ExitStack() as stack:
        ports: list[int] = []
        for port in random.SystemRandom().sample(among, len(among)):
            if len(ports) == count:
                return ports
            with suppress(OSError):
                stack.enter_context(socket.create_server((HOST, port)))
                ports.append(port)
    raise BetimesError(f"{HOST}: fewer than {count} ports of {among[0]} to {among[-1]} are free")


def broker_files(plan: FleetPlan, secret: str) -> dict[str, str]:
    """Return each broker's configuration file. Of two neighbours the one named first dials the other.

    A link that the topology has in one direction only gets the same rate in the other: brokers acknowledge.
    """
    speeds = {(link.source, link.target): link.s_per_kb_mean for link in plan.links}
    order = list(plan.ports)
    texts = {}
    for name, port in plan.ports.items():
        lines = [f"name = {json.dumps(name)}", f"host = {json.dumps(plan.host)}", f"port = {port}"]
        settings = {**plan.settings, **plan.own_settings.get(name, {})}
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        if plan.stores is not None:
            store = plan.stores.resolve() / f"{quote(name, safe='')}.db"
            lines.append(f"store = {json.dumps(str(store))}")
        lines += ["[network]", f"secret = {json.dumps(secret)}", f"strategy = {json.dumps(plan.strategy)}"]
        for other in _neighbours(name, speeds):
            lines += ["[[network.links]]", f"to = {json.dumps(other)}"]
            if order.index(name) < order.index(other):
                lines.append(f'address = "{HOST}:{plan.ports[other]}"')
            s_per_kb = speeds.get((name, other), speeds.get((other, name), 0.0))
            if plan.is_limited and s_per_kb > 0.0:
                lines.append(f'rate = "{1000.0 / s_per_kb:.3f}B/s"')
        if plan.fetch:
            lines += ["[buffer]", f"fetch = {json.dumps(plan.fetch)}"]
        texts[name] = "\n".join(lines) + "\n"
    return texts


def _neighbours(name: str, ends: Iterable[tuple[str, str]]) -> list[str]:
    found = [target if source == name else source for source, target in ends if name in (source, target)]
    return list(dict.fromkeys(found))


def make_folder(folder: Path) -> None:
    """Create a folder, if it does not exist; a BetimesError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BetimesError(f"{folder}: cannot create the directory ({error.strerror})") from None


class Fleet:
    """The running brokers of a plan; as a context manager it starts them all and stops them all."""

    def __init__(self, plan: FleetPlan) -> None:
        if len(plan.ports) > BROKERS_MAX:
            problem = f"{len(plan.ports)} brokers are too many for one machine, the limit is {BROKERS_MAX}"
            raise BetimesError(f"{problem}\nhint: simulate it, or start `betimes broker` on several machines")
        self.plan = plan
        self._folder = tempfile.TemporaryDirectory(prefix="betimes-")
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._restarts = dict.fromkeys(plan.ports, 0)

    def __enter__(self) -> Fleet:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def process_id(self, name: str) -> int:
        """Return the id of a broker's process."""
        return self._running[name].pid

    def tend(self) -> list[str]:
        """Restart brokers that have ended by themselves; return a message about each."""
        said = []
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[name]
            self._restarts[name] += 1
            if self._restarts[name] <= RESTARTS_MAX:
                self._launch(name)
                said.append(f"{name} ended with code {code} and was restarted")
            else:
                said.append(f"{name} ended with code {code} after {RESTARTS_MAX} restarts and stays down")
        return said

    def _start(self) -> None:
        if self.plan.stores is not None:
            make_folder(self.plan.stores)
        for name, text in broker_files(self.plan, secrets.token_hex(16)).items():
            path = Path(self._folder.name) / f"{self._number(name)}.toml"
            path.touch(0o600)
            path.write_text(text)
        end_s = time.monotonic() + START_S_MAX
        *others, first = self.plan.ports  # the broker named last dials no other, so it can start alone
        self._launch(first)
        self._wait_for(first, end_s)  # after an installation it compiles; the others then load the result
        for name in others:
            self._launch(name)
        for name in others:
            self._wait_for(name, end_s)

    def _number(self, name: str) -> int:
        return list(self.plan.ports).index(name)

    def _launch(self, name: str) -> None:
        config = Path(self._folder.name) / f"{self._number(name)}.toml"
        command = [str(Path(sys.executable).with_name("betimes")), "broker", str(config), *self.plan.options]
        with self._said(name).open("w") as said:
            self._running[name] = subprocess.Popen(
                command, stdout=said, text=True, start_new_session=True, **child_options()
            )

    def _said(self, name: str) -> Path:
        """Return the file with a broker's standard output, which names its ports."""
        return Path(self._folder.name) / f"{self._number(name)}.out"

    def _wait_for(self, name: str, end_s: float) -> None:
        """Wait until a broker accepts connections."""
        while True:
            if self._running[name].poll() is not None:
                raise BetimesError(f"{name}: the broker did not start; its error is above")
            if "MQTT at" in self._said(name).read_text():  # its port alone is no proof: another may listen
                return
            if time.monotonic() > end_s:
                raise BetimesError(
                    f"{name}: the broker did not start in time\nhint: the machine is busy; try again"
                )
            time.sleep(0.05)

    def _stop(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
            if process.stdin is not None:
                process.stdin.close()
        end_s = time.monotonic() + STOP_S_MAX
        for process in self._running.values():
            try:
                process.wait(max(end_s - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()
        self._folder.cleanup()
