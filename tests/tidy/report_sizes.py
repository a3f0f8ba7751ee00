"""Report large files and folders of the source: signs to look at, not limits. `make lint` runs it."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "betimes"
FILE_LINES, FOLDER_MODULES = 600, 25


def report() -> list[str]:
    """Return a line for each file above 600 lines and each folder above 25 modules."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES:
            found.append(f"{path.relative_to(SOURCE)}: {lines} lines (more than one idea?)")
    for folder in sorted({path.parent for path in SOURCE.rglob("*.py")}):
        modules = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        if modules > FOLDER_MODULES:
            found.append(f"{folder.relative_to(SOURCE)}/: {modules} modules (more than one concept?)")
    return found


if __name__ == "__main__":
    for line in report():
        print(line)
