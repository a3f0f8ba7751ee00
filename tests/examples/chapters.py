"""How are the commands of a page run? As a person types them: in a shell, one block after the other.

A block after ```` ```sh ```` runs to its end and succeeds; one after ```` ```sh fails ```` ends with 2, as a
mistake does; one after ```` ```sh stays ```` is left running, as in a terminal of its own, until the page is
through.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh(| fails| stays)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MISTAKE = 2
WITHIN_S = 240.0  # a machine may do much else
READY = (  # what is said by what stays, once it is there
    "MQTT at",
    "subscribed to",
    "http://",
    "New state: ALIVE",
    "Successfully registered with master",
)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are typed together."""

    manner: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are run."""
    return [Block(manner.strip(), text) for manner, text in BLOCK.findall(page.read_text())]


def run_page(page: Path, folder: Path) -> list[str]:
    """Run all blocks of a page in a folder that has the examples; return what each of them printed."""
    (folder / "examples").symlink_to(ROOT / "examples")
    said: list[str] = []
    with ExitStack() as stack:
        for block in blocks(page):
            if block.manner == "stays":
                stack.enter_context(_staying(block.text, folder, len(said)))
                said.append("")
                continue
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text],
                cwd=folder,
                env=_settings(),
                capture_output=True,
                text=True,
                timeout=WITHIN_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            wanted = MISTAKE if block.manner == "fails" else 0
            assert done.returncode == wanted, f"{page.name}: {block.text}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr, done.stderr
            said.append(done.stdout + done.stderr)
    return said


@contextmanager
def _staying(text: str, folder: Path, number: int) -> Iterator[None]:
    """Let something run, from when it says that it is there; it is told to end as by Ctrl-C."""
    said = folder / f"stays-{number}.txt"
    with said.open("w") as out:
        running = subprocess.Popen(
            ["bash", "-c", f"exec {text.strip()}"],
            cwd=folder,
            env=_settings(),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        end_s = time.monotonic() + WITHIN_S
        while not any(word in said.read_text() for word in READY):
            assert running.poll() is None, f"{text}\n{said.read_text()}"
            assert time.monotonic() < end_s, f"{text}\n{said.read_text()}"
            time.sleep(0.1)
        yield
    finally:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(30.0)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    assert "Traceback" not in said.read_text(), said.read_text()


def _settings() -> dict[str, str]:
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    settings["PATH"] = f"{Path(sys.executable).parent}:{settings['PATH']}"
    return settings
