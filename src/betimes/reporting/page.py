"""An HTML page from sections of text, pictures and tables: one file that loads nothing from the network."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from betimes.model.errors import BetimesError
from betimes.terminal.terminal import cell_text

ROWS_MAX = 1_000  # of a table; the Parquet tables have all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table of a page; the columns named in `right` hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: Sequence[str] = ()
    title: str = ""

    def shown(self) -> PageTable:
        """Return the table as text, with at most ROWS_MAX rows."""
        cut = len(self.rows) - ROWS_MAX
        title = f"{self.title} ({cut:,} more rows left out)" if cut > 0 else self.title
        rows = [[cell_text(cell) for cell in row] for row in self.rows[:ROWS_MAX]]
        return PageTable(columns=self.columns, rows=rows, right=self.right, title=title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page; pictures are SVG text."""

    key: str
    title: str
    texts: Sequence[str] = ()
    pictures: Sequence[str] = ()
    tables: Sequence[PageTable] = ()


def page_text(title: str, about: str, numbers: Sequence[tuple[str, str]], sections: Sequence[Section]) -> str:
    """Return a whole page, with names, filters and reasons escaped."""
    pages = files("betimes.reporting") / "pages"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string((pages / "report.html").read_text())
    return template.render(
        title=title,
        about=about,
        numbers=numbers,
        style=(pages / "page.css").read_text(),
        sections=sections,
    )


def check_page_place(path: Path) -> None:
    """Raise an error if the page cannot be written, before the work begins."""
    if path.is_dir():
        hint = f"name a file in it: --out {path / 'report.html'}"
        raise BetimesError(f"{path}: the page cannot be written (this is a directory)\nhint: {hint}")
    with _told_if_unwritable(path), tempfile.TemporaryFile(dir=_made(path.parent)):
        pass


def write_page(path: Path, text: str) -> None:
    """Write a page in one step, so that no reader sees half of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with _told_if_unwritable(path):
        try:
            _made(path.parent)
            new.write_text(text, encoding="utf-8")
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _told_if_unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "pass another path with --out"
        raise BetimesError(f"{path}: the page cannot be written ({error.strerror})\nhint: {hint}") from error
