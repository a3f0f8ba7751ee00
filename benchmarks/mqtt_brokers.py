"""How is an MQTT broker started on a free port of this machine, and ended again?"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

START_S_MAX = 20.0
END_S_MAX = 10.0
SYSTEM_PATH = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"  # where packages put servers


def installed(name: str) -> str | None:
    """Return where a server of this name is; it need not be on the path of a user."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)


def cpu_s(process: int) -> float | None:
    """Return the processor time that a process has used; None where there is no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(
    command: list[str], port: int, stderr: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a broker until the block ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        deadline_s = time.monotonic() + START_S_MAX
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"did not start: {' '.join(command)}")
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def betimes(*options: str) -> list[str]:
    """Return the command of our broker."""
    return [str(Path(sys.executable).with_name("betimes")), "broker", *options]


def open_betimes(config: Path, port: int, *options: str) -> list[str]:
    """Return the command of our broker, for everybody who comes, thousands of them at once.

    It writes telemetry, of as many events as usual.
    """
    telemetry = f'[telemetry]\ndirectory = "{config.stem}-telemetry"\n'
    config.write_text(f"port = {port}\nanonymous = true\n[limits]\nconnection_rate = 1000000\n{telemetry}")
    return betimes(str(config), *options)


def mosquitto(config: Path, port: int, *lines: str) -> list[str]:
    """Return the command of Mosquitto, for everybody who comes, with these lines in its configuration."""
    program = installed("mosquitto")
    assert program is not None, "who asks for it has looked whether it is there"
    own = ("allow_anonymous true", f"listener {port} 127.0.0.1", f"user {getpass.getuser()}")
    config.write_text("\n".join((*own, *lines)) + "\n")
    return [program, "-c", str(config)]


def nats(config: Path, port: int) -> list[str]:
    """Return the command of NATS, which keeps what MQTT promises in JetStream, and so needs a folder."""
    program = installed("nats-server")
    assert program is not None, "who asks for it has looked whether it is there"
    config.write_text(
        f'server_name: "bench"\nlisten: "127.0.0.1:{free_port()}"\n'
        f'jetstream {{ store_dir: "{config.parent / "nats"}" }}\n'
        f'mqtt {{ listen: "127.0.0.1:{port}", max_ack_pending: 65535 }}\n'
    )
    return [program, "-c", str(config)]


def amqtt(config: Path, port: int) -> list[str]:
    """Return the command of amqtt, for everybody who comes."""
    program = installed("amqtt")
    assert program is not None, "who asks for it has looked whether it is there"
    config.write_text(
        f'listeners:\n  default:\n    type: tcp\n    bind: "127.0.0.1:{port}"\n'
        "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin:\n    allow_anonymous: true\n"
    )
    return [program, "-c", str(config)]
