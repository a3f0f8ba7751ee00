"""How are the commands of a page run? As a person types them: in a shell, one block after the other.

A block after ```` ```sh ```` runs to its end and succeeds; one after ```` ```sh fails ```` ends with 2, as a
mistake does; one after ```` ```sh stays ```` is left running, as in a terminal of its own, until the page is
through. Of one after ```` ```sh terminals ```` each line has a terminal of its own: all but the last stay.
One after ```` ```sh shown ```` is not run: `test_pages.py` says why, and checks what can be checked.
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
BLOCK = re.compile(r"^```sh(| fails| stays| terminals)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MISTAKE = 2
WITHIN_S = 240.0  # a machine may do much else
READY = (  # what is said by what stays, once it is there
    "MQTT at",
    "subscribed to",
    "for peers and clients",
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
    found: list[Block] = []
    for manner, text in BLOCK.findall(page.read_text()):
        if manner.strip() == "terminals":
            *stay, last = text.splitlines()
            found += [Block("stays", line) for line in stay] + [Block("", last)]
        else:
            found.append(Block(manner.strip(), text))
    return found


def run_page(page: Path, folder: Path, commands: Path | None = None) -> list[str]:
    """Run all blocks of a page in a folder that has the examples; return what each of them printed.

    With `commands`, what is in that folder is found first.
    """
    settings = _settings(commands)
    (folder / "examples").symlink_to(ROOT / "examples")
    said: list[str] = []
    with ExitStack() as stack:
        for block in blocks(page):
            if block.manner == "stays":
                stack.enter_context(_staying(block.text, folder, len(said), settings))
                said.append("")
                continue
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text],
                cwd=folder,
                env=settings,
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
def _staying(text: str, folder: Path, number: int, settings: dict[str, str]) -> Iterator[None]:
    """Let something run, from when it says that it is there; it is told to end as by Ctrl-C."""
    said = folder / f"stays-{number}.txt"
    with said.open("w") as out:
        running = subprocess.Popen(
            ["bash", "-c", f"exec {text.strip()}"],
            cwd=folder,
            env=settings,
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


def _settings(commands: Path | None) -> dict[str, str]:
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    settings["PATH"] = f"{Path(sys.executable).parent}:{settings['PATH']}"
    if commands is not None:
        settings["PATH"] = f"{commands}:{settings['PATH']}"
    return settings
