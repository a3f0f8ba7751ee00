"""How are all golden files recorded anew? `make golden`, or `python -m tests.golden.record [NAME ...]`."""

from __future__ import annotations

import sys

from tests.golden.recording import RECORDED, golden_texts, path_of, record


def main(chosen: list[str]) -> None:
    """Record all, or those that are named; remove what nothing yields any more."""
    known = golden_texts()
    for name in chosen or known:
        if record(name, known[name]()):
            print(f"changed: {path_of(name).relative_to(RECORDED.parents[2])}")
    for path in sorted(RECORDED.glob("*.txt")):
        if path.stem not in known:
            path.unlink()
            print(f"removed: {path.relative_to(RECORDED.parents[2])}")


if __name__ == "__main__":
    main(sys.argv[1:])
