"""Is a file that cannot be read refused by its name?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.model.errors import BetimesError
from betimes.terminal import files as reading
from betimes.terminal.files import read_binary_file, read_text_file


def test_a_text_file_is_read(tmp_path):
    (tmp_path / "a.toml").write_text("ä = 1", encoding="utf-8")
    assert read_text_file(tmp_path / "a.toml") == "ä = 1"


def test_what_is_no_readable_text_is_named(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, problem in (("missing", "no such file"), ("", "directory"), ("binary", "not UTF-8")):
        with pytest.raises(BetimesError, match=problem) as caught:
            read_text_file(tmp_path / name)
        assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_there_is_told_with_what_is(tmp_path):
    def hint(path: Path, made_by: str = "") -> str:
        with pytest.raises(BetimesError, match="no such file") as caught:
            read_text_file(path, made_by)
        return str(caught.value).partition("hint: ")[2]

    (tmp_path / "city.toml").write_text("")
    (tmp_path / "notes").write_text("")
    assert hint(tmp_path / "ctiy.toml") == "did you mean city.toml?"
    assert hint(tmp_path / "brokers.toml") == f"known .toml files in {tmp_path}: city.toml"
    assert hint(tmp_path / "x.json") == f"there are no .json files in {tmp_path}"
    assert hint(tmp_path / "users") == f"known files in {tmp_path}: city.toml, notes"
    assert hint(tmp_path / "none" / "x") == f"the folder {tmp_path / 'none'} does not exist either"
    assert hint(tmp_path / "users", "betimes passwd makes one") == "betimes passwd makes one"


def test_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BYTES_MAX", 3)
    (tmp_path / "a").write_text("four")
    with pytest.raises(BetimesError, match="too large"):
        read_text_file(tmp_path / "a")


def test_a_mark_in_front_of_the_text_is_not_part_of_it(tmp_path):
    path = tmp_path / "marked.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'x'")
    assert read_text_file(path) == "name = 'x'"


def test_a_device_is_refused_and_not_read_for_ever():
    with pytest.raises(BetimesError, match="not a regular file"):
        read_text_file(Path("/dev/zero"))


def test_bytes_are_read_as_they_are_and_lines_of_text_end_alike(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\r\nb\rc\xff")
    assert read_binary_file(path, 7) == b"a\r\nb\rc\xff"
    with pytest.raises(BetimesError, match="too large"):
        read_binary_file(path, 6)
    path.write_bytes(b"a\r\nb\rc")
    assert read_text_file(path) == "a\nb\nc"
