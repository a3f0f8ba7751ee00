"""How much memory do Spark's executors take, each with its Python workers, beside what they were given?

An executor is given a heap (`spark.executor.memory`) and room beside it, where Python is
(`spark.executor.memoryOverhead`). Resident memory is added up over the executor's Java and all processes
below it: pages of an index that is mapped count for each of them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

BACKEND = b"CoarseGrainedExecutorBackend"
LOOK_EVERY_S = 0.05
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
HEAP_MB, BESIDE_MB = 1024, 1536
SETTINGS = {"spark.executor.memory": f"{HEAP_MB}m", "spark.executor.memoryOverhead": f"{BESIDE_MB}m"}
MASTER = f"local-cluster[2,1,{HEAP_MB}]"


class ExecutorWatch(threading.Thread):
    """Looks now and then how much memory each executor of this process's cluster holds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks_mb: dict[int, float] = {}  # by process id
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            for process, held_mb in executors_mb(os.getpid()).items():
                self.peaks_mb[process] = max(held_mb, self.peaks_mb.get(process, 0.0))

    def end(self) -> dict[str, object]:
        """Stop looking, and return what was found."""
        self._ended.set()
        self.join()
        most = max(self.peaks_mb.values(), default=0.0)
        given = HEAP_MB + BESIDE_MB
        return {
            "executors": len(self.peaks_mb),
            "executor_mb_given": given,
            "executor_mb_peak": round(most),
            "is_within": 0.0 < most <= given,
        }


def executors_mb(ancestor: int) -> dict[int, float]:
    """Return the resident memory of each executor below a process, with all that it started."""
    children: dict[int, list[int]] = {}
    resident_mb: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            pages = int((path / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
        children.setdefault(parent, []).append(int(path.name))
        resident_mb[int(path.name)] = pages * PAGE_MB
    below = tree(ancestor, children)
    executors = [each for each in below if is_executor(each)]
    return {each: sum(resident_mb.get(one, 0.0) for one in tree(each, children)) for each in executors}


def tree(root: int, children: dict[int, list[int]]) -> list[int]:
    """Return a process and all below it."""
    found = [root]
    for each in found:
        found.extend(children.get(each, []))
    return found


def is_executor(process: int) -> bool:
    """Tell whether a process is the Java of an executor."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"java") and any(word.endswith(BACKEND) for word in words)
