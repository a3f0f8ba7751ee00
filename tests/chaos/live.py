"""A network of real brokers under faults: processes with stores in a ring, and links over proxies.

Clients, nemesis and checker are those of the simulated network (`simulated.py`); here they act on processes,
sockets and the clock of the machine. Each link goes through a `LinkProxy`, which can delay or withhold the
bytes of each direction. Everything that is started ends with `LiveNetwork`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from typing import cast as typed

from tests.chaos.actors import Actor, Cast, Publisher, cast
from tests.chaos.checker import Log, Verdict, judge, with_more
from tests.chaos.nemesis import UNDONE_S, Nemesis

from betimes.terminal.fleet import HOST, free_ports
from betimes.terminal.parent import child_options

PORTS = range(12_000, 20_000)  # of its own: the port of a broker that is down looks free to other tests
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
DELAY_S = (0.002, 0.02)  # of a direction of a link, if nothing is wrong with it
HELD_BYTES_MAX = 4_000_000  # in one direction of a connection: then its sender has to wait
RESTART_S = 1.0  # after a broker has ended by itself
START_S_MAX = 60.0
END_S_MAX = 20.0
CONNECT_S_MAX = 2.0
PAGE_S_MAX = 3.0
SAMPLE_EVERY_S = 2.0
CALM_S = 5.0  # for which clients publish once all has healed
DRAIN_S_MAX = 300.0
QUIET_S = 2.0  # without a delivery: then nothing more comes
SECRET = "a secret of the network under chaos"


class Direction:
    """One direction of a link; its connections come and go."""

    def __init__(self, delay_s: float) -> None:
        self.is_cut = False
        self.delay_s = self._usual_s = delay_s
        self.flows: set[Flow] = set()

    def cut(self) -> None:
        self.is_cut = True

    def heal(self) -> None:
        self.is_cut = False
        for flow in list(self.flows):
            flow.pump()

    def slow_down(self, delay_s: float | None) -> None:
        self.delay_s = self._usual_s if delay_s is None else delay_s


class Flow:
    """The bytes of one connection in one direction: in order, each after the delay; None is the end."""

    def __init__(self, direction: Direction) -> None:
        self.source: asyncio.Transport | None = None
        self.target: asyncio.Transport | None = None
        self._direction = direction
        self._held: deque[tuple[float, bytes | None]] = deque()
        self._bytes = 0
        self._is_waiting = False
        direction.flows.add(self)

    def put(self, data: bytes | None) -> None:
        due_s = asyncio.get_running_loop().time() + self._direction.delay_s
        self._held.append((max(due_s, self._held[-1][0] if self._held else 0.0), data))
        self._bytes += len(data or b"")
        if self._bytes > HELD_BYTES_MAX and self.source is not None:
            self.source.pause_reading()
        self.pump()

    def pump(self) -> None:
        """Pass on what is due."""
        if self._direction.is_cut or self.target is None or self._is_waiting:
            return
        loop = asyncio.get_running_loop()
        while self._held and self._held[0][0] <= loop.time():
            _, data = self._held.popleft()
            if data is None or self.target.is_closing():
                self.target.close()
                self._held.clear()
                self._direction.flows.discard(self)
                return
            self._bytes -= len(data)
            self.target.write(data)
        if self._held:
            self._is_waiting = True
            loop.call_at(self._held[0][0], self._wake)
        elif self.source is not None and not self.source.is_closing():
            self.source.resume_reading()

    def _wake(self) -> None:
        self._is_waiting = False
        self.pump()


class _ProxyEnd(asyncio.Protocol):
    """One socket of a proxied connection: it reads into one flow, and the other flow writes to it."""

    def __init__(self, reads: Flow, writes: Flow, made: Callable[[], None] = lambda: None) -> None:
        self._reads = reads
        self._writes = writes
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reads.source = self._writes.target = typed(asyncio.Transport, transport)
        self._made()
        self._writes.pump()

    def data_received(self, data: bytes) -> None:
        self._reads.put(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._reads.put(None)


class LinkProxy:
    """Stands between a broker that dials and the one that it dials."""

    def __init__(self, port: int, there: Direction, back: Direction) -> None:
        self.port = 0
        self._target_port = port
        self._there = there
        self._back = back
        self._server: asyncio.Server | None = None
        self._dials: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accepted, HOST, 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        assert self._server is not None, "it was started"
        self._server.close()
        for task in self._dials:
            task.cancel()
        for flow in (*self._there.flows, *self._back.flows):
            if flow.target is not None:
                flow.target.abort()

    def _accepted(self) -> _ProxyEnd:
        there, back = Flow(self._there), Flow(self._back)

        def dial() -> None:
            task = asyncio.get_running_loop().create_task(self._dial(there, back))
            self._dials.add(task)
            task.add_done_callback(self._dials.discard)

        return _ProxyEnd(there, back, dial)

    async def _dial(self, there: Flow, back: Flow) -> None:
        while self._there.is_cut or self._back.is_cut:  # nor would a SYN get through
            await asyncio.sleep(0.05)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: _ProxyEnd(back, there), HOST, self._target_port
            )
        except OSError:
            if back.target is not None:
                back.target.abort()
            for flow, direction in ((there, self._there), (back, self._back)):
                direction.flows.discard(flow)


class LiveBroker:
    """One broker as a process, from life to life, with a service manager that restarts it."""

    def __init__(
        self, name: str, port: int, metrics_port: int, folder: Path, dials: dict[str, int], log: Log
    ) -> None:
        self.name = name
        self.is_ready = False
        self._log = log
        self.port = port
        self.metrics_port = metrics_port
        self.dials = list(dials)
        self.is_stopped = False
        self.memory_mb_max = 0.0
        self.memory_mb = 0.0
        self.starts = 0
        self.problems: list[str] = []
        self._access = folder / f"{name}.acl"
        self._config = folder / f"{name}.toml"
        self._store = folder / f"{name}.db"
        self._reloads = 0
        self._ahead_s = 0.0
        self._disk_is_full = self._disk_was_full = False
        self._is_ending = False  # the nemesis wants it
        self._wanted = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._said: deque[str] = deque(maxlen=30)
        self._write_config(dials)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and not self._is_ending

    # --- faults

    def start(self) -> None:
        self._wanted.set()

    def kill(self, when: str = "now") -> None:
        self._end(signal.SIGKILL)

    def shut_down(self) -> None:
        self._end(signal.SIGTERM)

    def stop(self) -> None:
        self.is_stopped = self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_stopped = False
        self._signal(signal.SIGCONT)

    def set_clock(self, ahead_s: float) -> bool:
        self._ahead_s = ahead_s
        return FAKETIME.exists()

    def fill_disk(self) -> None:
        """Let every write to a file fail from now on, as on a full disk."""
        self._disk_is_full = self._disk_was_full = True
        self._limit_files()

    def free_disk(self) -> None:
        self._disk_is_full = False
        self._limit_files()

    def reload(self) -> None:
        self._reloads += 1
        self._access.write_text(f"# version {self._reloads}\ntopic readwrite #\n")
        self._signal(signal.SIGHUP)

    # --- its lives

    async def live(self) -> None:
        """Run the broker whenever it is wanted, for ever."""
        while True:
            await self._wanted.wait()
            self._is_ending, self._disk_was_full = False, self._disk_is_full
            process = await self._spawn()
            try:
                code = await self._until_ended(process)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            self._process, self.is_stopped, self.is_ready = None, False, False
            self._log.note(asyncio.get_running_loop().time(), f"{self.name} ended with code {code}")
            if not self._is_ending and not self._disk_was_full:
                said = "\n".join(self._said)
                self.problems.append(f"{self.name} ended by itself with code {code}: {said}")
            if not self._is_ending:
                await asyncio.sleep(RESTART_S)

    def sample(self) -> None:
        """Note how much memory it takes."""
        if self._process is not None:
            with contextlib.suppress(OSError, IndexError):
                pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
                self.memory_mb = pages * resource.getpagesize() / 1e6
                self.memory_mb_max = max(self.memory_mb_max, self.memory_mb)

    async def page(self, path: str) -> str:
        """Return what it says over HTTP: "ok", or what is wrong."""
        try:
            async with asyncio.timeout(PAGE_S_MAX):
                reader, writer = await asyncio.open_connection(HOST, self.metrics_port)
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                answer = (await reader.read()).decode()
                writer.close()
        except (OSError, TimeoutError) as error:
            return f"no answer ({type(error).__name__})"
        return answer.partition("\r\n\r\n")[2].strip()

    async def _spawn(self) -> asyncio.subprocess.Process:
        options = child_options()
        if self._ahead_s and FAKETIME.exists():
            options["env"] |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME": f"{self._ahead_s:+.0f}",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_RESET": "1",
            }
        self.starts += 1
        self._log.note(asyncio.get_running_loop().time(), f"{self.name} starts, {self._ahead_s} s ahead")
        self._said.clear()
        process = self._process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("betimes")),
            "broker",
            str(self._config),
            *([] if self._log.trace is None else ["--verbose"]),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            **options,
        )
        self._limit_files()
        return process

    async def _until_ended(self, process: asyncio.subprocess.Process) -> int:
        assert process.stdout is not None, "it has a pipe"
        assert process.stderr is not None, "it has a pipe"
        await process.stdout.readline()  # the address at which it serves, or nothing
        self.is_ready = True
        async for line in process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._said.append(text)
            self._log.note(asyncio.get_running_loop().time(), f"{self.name}: {text}")
            if "Traceback" in text:
                self.problems.append(f"{self.name} had an exception, see its last words")
        return await process.wait()

    def _end(self, number: signal.Signals) -> None:
        self._wanted.clear()
        self._is_ending = True
        if self.is_stopped:
            self.resume()
        self._signal(number)

    def _signal(self, number: signal.Signals) -> bool:
        if self._process is None or self._process.returncode is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
            return True
        return False

    def _limit_files(self) -> None:
        if self._process is not None and self._process.returncode is None:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            soft = 0 if self._disk_is_full else hard
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def _write_config(self, dials: dict[str, int]) -> None:
        self._access.write_text("topic readwrite #\n")
        lines = [
            f"name = {json.dumps(self.name)}",
            f"port = {self.port}",
            f"metrics_port = {self.metrics_port}",
            "anonymous = true",
            f"access = {json.dumps(str(self._access))}",
            f"store = {json.dumps(str(self._store))}",
            "[buffer]",
            'fetch = ["#"]',
            "[network]",
            f"secret = {json.dumps(SECRET)}",
        ]
        for other, port in dials.items():
            lines += ["[[network.links]]", f"to = {json.dumps(other)}", f'address = "{HOST}:{port}"']
        self._config.touch(0o600)
        self._config.write_text("\n".join(lines) + "\n")


class _ClientLine(asyncio.Protocol):
    """The socket of a client."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = typed(asyncio.Transport, transport)
        self.transport.write(self.actor.connected(asyncio.get_running_loop().time()))

    def data_received(self, data: bytes) -> None:
        if self.transport is not None:
            self.answer(self.actor.receive(data, asyncio.get_running_loop().time()))

    def connection_lost(self, _error: Exception | None) -> None:
        self._forget()

    def tick(self) -> None:
        self.answer(self.actor.tick(asyncio.get_running_loop().time()))

    def answer(self, data: bytes | None) -> None:
        if self.transport is None:
            return
        if data is None:
            self.transport.abort()
            self._forget()
        elif data:
            self.transport.write(data)

    def _forget(self) -> None:
        if self.transport is not None:
            self.transport = None
            self.actor.lost(asyncio.get_running_loop().time())


async def live_as(actor: Actor, ports: dict[str, int]) -> None:
    """Let a client live, for ever."""
    loop, line = asyncio.get_running_loop(), _ClientLine(actor)
    while True:
        await asyncio.sleep(actor.chance.uniform(0.01, 0.05))
        if line.transport is not None:
            line.tick()
        elif loop.time() >= actor.connect_at_s:
            port = ports[actor.choose_broker(loop.time())]
            try:
                async with asyncio.timeout(CONNECT_S_MAX):
                    await loop.create_connection(lambda: line, HOST, port)
            except (OSError, TimeoutError):
                actor.lost(loop.time())


class LiveNetwork:
    """Real brokers in a ring, with clients; it serves as long as it is entered."""

    def __init__(self, names: Sequence[str], log: Log, *, seed: str) -> None:
        self.log = log
        self.chance = random.Random(seed)
        self.actors: list[Actor] = []
        self._names = list(names)
        self._folder = TemporaryDirectory(prefix="betimes-chaos-")
        self._tasks: list[asyncio.Task[None]] = []
        self._proxies: list[LinkProxy] = []
        self._paths: dict[tuple[str, str], Direction] = {}
        self.brokers: dict[str, LiveBroker] = {}

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def at(self, time_s: float, call: Callable[[], Any]) -> None:
        asyncio.get_running_loop().call_at(time_s, call)

    def path(self, one: str, other: str) -> Direction:
        found = self._paths.get((one, other))
        if found is None:
            found = self._paths[one, other] = Direction(self.chance.uniform(*DELAY_S))
        return found

    async def __aenter__(self) -> Self:
        names, ports = self._names, free_ports(2 * len(self._names), PORTS)
        ring = [*names[1:], names[0]] if len(names) > 2 else names[1:]
        port_of = dict(zip(names, ports[: len(names)], strict=True))
        metrics = dict(zip(names, ports[len(names) :], strict=True))
        for name in names:
            dials = {}
            for other in ring[names.index(name) : names.index(name) + 1]:
                proxy = LinkProxy(port_of[other], self.path(name, other), self.path(other, name))
                await proxy.start()
                self._proxies.append(proxy)
                dials[other] = proxy.port
            broker = LiveBroker(name, port_of[name], metrics[name], Path(self._folder.name), dials, self.log)
            self.brokers[name] = broker
            self._begin(broker.live())
            broker.start()
        self._begin(self._sample())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for broker in self.brokers.values():
            broker.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for proxy in self._proxies:
            await proxy.stop()
        self._folder.cleanup()

    def add(self, actor: Actor) -> None:
        """Let a client live."""
        self.actors.append(actor)
        self._begin(live_as(actor, {name: each.port for name, each in self.brokers.items()}))

    async def pages(self, path: str) -> dict[str, str]:
        """Return what each broker says over HTTP."""
        answers = await asyncio.gather(*(each.page(path) for each in self.brokers.values()))
        return dict(zip(self.brokers, answers, strict=True))

    def check_tasks(self) -> None:
        """Raise what ended a task of the run, if something did: the run itself has a bug."""
        for task in self._tasks:
            if task.done():
                task.result()

    def _begin(self, work: Any) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _sample(self) -> None:
        while True:
            for broker in self.brokers.values():
                broker.sample()
            await asyncio.sleep(SAMPLE_EVERY_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """How much is done to a live network."""

    brokers: int = 3
    faults: int = 8
    seconds: float = 20.0
    rate_per_s: float = 100.0
    publishers: int = 6
    heal_s_max: float = 30.0
    memory_mb_max: float = 700.0
    seed: int = 0
    trace: Path | None = None  # where all that happens is written to


@dataclass(slots=True)
class LiveRun:
    """A run, round by round."""

    net: LiveNetwork
    clients: Cast
    plan: LivePlan
    tell: Callable[[str], None]
    healed_s: list[float] = field(default_factory=list)

    async def begin(self) -> None:
        """Wait until all brokers are linked and all clients are subscribed."""
        self.clients.calm_down()
        await self._until(self._is_ready, START_S_MAX, "the brokers are linked")
        for actor in self.clients.speakers:
            self.net.add(actor)
        await self._speak(self.clients.beacons, 2.0)  # so every broker is an origin that clients know
        for subscriber in self.clients.subscribers:
            self.net.add(subscriber)
        await self._until(self._all_served, START_S_MAX, "all clients are served")
        await asyncio.sleep(QUIET_S)

    async def round(self, seconds: float, faults: int) -> Verdict:
        """Commit faults for so long, let everything heal, and judge."""
        net, log = self.net, self.net.log
        log.begin()
        began_s = net.now_s
        for actor in self.clients.everybody:
            actor.is_calm = False
        for publisher in self.clients.publishers:
            publisher.is_publishing = True
        nemesis = Nemesis(net, random.Random(net.chance.random()), log)
        moments = sorted(net.chance.uniform(0.0, seconds) for _ in range(faults))
        for moment_s in moments:
            await self._until_s(began_s + moment_s)
            nemesis.strike()
        await self._until_s(began_s + seconds)
        await asyncio.sleep(max(UNDONE_S - (net.now_s - began_s - max(moments, default=0.0)), 0.0))
        self.clients.calm_down()
        more = await self._heal()
        published_s = net.now_s - began_s
        more += await self._settle()
        rate = len(log.sent) / published_s
        self.tell(f"{len(log.sent)} publications in {published_s:.0f} s, {rate:.0f} a second")
        return self._judged(more)

    async def _heal(self) -> list[str]:
        """Wait until all is well, and say what is not in time; publishers go on."""
        began_s, log = self.net.now_s, self.net.log
        promised = set(log.acknowledged)

        async def is_well() -> bool:
            has_all = all(promised <= log.received[each].keys() for each in log.durable)
            return has_all and self._served() and await self._is_ready()

        is_healed = await self._until(is_well, self.plan.heal_s_max)
        healed_s = self.net.now_s - began_s
        self.healed_s.append(healed_s)
        self.tell(f"healed {healed_s:.1f} s after the last fault was undone")
        if is_healed:
            return []
        ready, late = await self.net.pages("/readyz"), self._not_served()
        missing = {each: len(promised - log.received[each].keys()) for each in log.durable}
        return [f"not healed after {healed_s:.0f} s: /readyz {ready}, missing {missing}, not served: {late}"]

    async def _settle(self) -> list[str]:
        """Publish once more, and wait until everything has come."""
        log, more = self.net.log, list[str]()
        log.is_calm = True
        await self._speak(self.clients.speakers, CALM_S)

        async def is_empty() -> bool:
            return all(log.acknowledged <= log.received[each].keys() for each in log.durable) and all(
                each.is_done for each in self.clients.speakers
            )

        await self._until(is_empty, DRAIN_S_MAX)  # what is late is not lost: `_heal` judges how long it takes
        await self._until_quiet()
        for subscriber in self.clients.subscribers:  # those that resume are told what they have lost
            subscriber.come_back()
        await asyncio.sleep(0.5)
        if not await self._until(self._all_served, self.plan.heal_s_max):
            more.append(f"not served: {self._not_served()}")
        await self._until_quiet()
        log.is_calm = False
        health = await self.net.pages("/healthz")
        return more + [f"{name} is not healthy: {text}" for name, text in health.items() if text != "ok"]

    def _judged(self, more: list[str]) -> Verdict:
        for broker in self.net.brokers.values():
            more += broker.problems
            broker.problems = []
            if broker.memory_mb_max > self.plan.memory_mb_max:
                more.append(f"{broker.name} took {broker.memory_mb_max:.0f} MB")
        return with_more(judge(self.net.log), more)

    async def _until_quiet(self) -> None:
        """Wait until nothing more is delivered."""
        before, since_s = -1, self.net.now_s
        end_s = since_s + self.plan.heal_s_max
        while self.net.now_s < end_s:
            now = self.net.log.deliveries
            if now != before:
                before, since_s = now, self.net.now_s
            elif self.net.now_s - since_s >= QUIET_S:
                return
            await asyncio.sleep(0.2)

    async def _speak(self, publishers: Sequence[Publisher], for_s: float) -> None:
        for publisher in publishers:
            publisher.is_publishing = True
        await asyncio.sleep(for_s)
        for publisher in publishers:
            publisher.is_publishing = False

    async def _until_s(self, time_s: float) -> None:
        await asyncio.sleep(max(time_s - self.net.now_s, 0.0))
        self.net.check_tasks()

    async def _until(self, condition: Any, within_s: float, what: str = "") -> bool:
        end_s = self.net.now_s + within_s
        while not await condition():
            if self.net.now_s > end_s:
                if what:
                    raise TimeoutError(f"{what}: not within {within_s} s")
                return False
            self.net.check_tasks()
            await asyncio.sleep(0.2)
        return True

    async def _is_ready(self) -> bool:
        return all(each == "ok" for each in (await self.net.pages("/readyz")).values())

    def _served(self) -> bool:
        return not self._not_served()

    def _not_served(self) -> list[str]:
        """Return the clients without a connection that works; publishers always have something to send."""
        return [each.client_id for each in self.clients.everybody if not each.is_served]

    async def _all_served(self) -> bool:
        return self._served()


async def run_live(plan: LivePlan, *, rounds: int = 1, tell: Callable[[str], None] = print) -> list[Verdict]:
    """Return the verdict of each round."""
    names = [f"b{number}" for number in range(1, plan.brokers + 1)]
    verdicts = []
    log = Log(trace=None if plan.trace is None else [])
    async with LiveNetwork(names, log, seed=str(plan.seed)) as net:
        if not FAKETIME.exists():
            tell(f"clocks are not skewed: {FAKETIME} is missing (Debian: apt install faketime)")
        per_s = plan.rate_per_s / plan.publishers
        clients = cast(names, log, str(plan.seed), publishers=plan.publishers, per_s=per_s)
        run = LiveRun(net, clients, plan, tell)
        await run.begin()
        telling = asyncio.get_running_loop().create_task(_tell_progress(net, tell))
        try:
            for number in range(rounds):
                faults = plan.faults * (number + 1) // rounds - plan.faults * number // rounds
                verdicts.append(await run.round(plan.seconds / rounds, faults))
                tell(f"round {number + 1} of {rounds}: {verdicts[-1]}")
        finally:
            telling.cancel()
            if plan.trace is not None:
                plan.trace.write_text("\n".join(log.trace or []))
        for broker in net.brokers.values():
            tell(f"{broker.name}: {broker.starts} starts, at most {broker.memory_mb_max:.0f} MB")
    return verdicts


async def _tell_progress(net: LiveNetwork, tell: Callable[[str], None]) -> None:
    began_s = time.monotonic()
    while True:
        await asyncio.sleep(10.0)
        log = net.log
        memory = ", ".join(
            f"{name} {'' if each.is_alive else '(down) '}{each.memory_mb:.0f} MB"
            for name, each in net.brokers.items()
        )
        tell(
            f"{time.monotonic() - began_s:5.0f} s: {log.faults.total()} faults, {len(log.sent)} sent, "
            f"{len(log.acknowledged)} acknowledged, {log.deliveries} deliveries, "
            f"{log.connections} connections; {memory}; {_load()}"
        )


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def total(verdicts: Sequence[Verdict]) -> str:
    """Return the sum of all rounds as a text."""
    faults: Counter[str] = sum((each.faults for each in verdicts), Counter())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(faults.items()))
    bad = [each for verdict in verdicts for each in verdict.violations]
    return (
        f"{faults.total()} faults ({kinds}); {sum(each.sent for each in verdicts)} sent, "
        f"{sum(each.acknowledged for each in verdicts)} acknowledged, "
        f"{sum(each.deliveries for each in verdicts)} deliveries, "
        f"{sum(each.connections for each in verdicts)} connections, "
        f"{sum(each.told for each in verdicts)} losses told as gaps; "
        + (f"{len(bad)} violations" if bad else "no violation")
    )
