"""Is it kept where a subscriber stopped, and is a broken file told as such?"""

from __future__ import annotations

import pytest

from betimes.model.errors import SettingError
from betimes.terminal.resume_file import alone_with, read_resume_file, write_resume_file


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "x.resume"
    assert read_resume_file(path) == {}
    for tokens in ({"t": ["b1:5"]}, {"t": ["b1:7,2", "b2:1"], "u/#": ["b1:7"]}):
        write_resume_file(path, tokens)
        assert read_resume_file(path) == tokens
    assert [each.name for each in tmp_path.iterdir()] == ["x.resume"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2, "topics": {}}',
        '{"version": 1, "topics": {"t": ["garbage"]}}',
        '{"version": 1, "topics": {"t": 5}}',
        '{"version": 1, "topics": {"t": [5]}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_none_offers_a_fresh_start(tmp_path, text):
    path = tmp_path / "x.resume"
    path.write_text(text)
    with pytest.raises(SettingError, match="fresh start"):
        read_resume_file(path)


def test_a_file_that_cannot_be_written_or_read_is_told(tmp_path):
    with pytest.raises(SettingError, match="cannot be written"):
        write_resume_file(tmp_path / "nowhere" / "x.resume", {})
    with pytest.raises(SettingError, match="cannot be read"):
        read_resume_file(tmp_path)


def test_two_cannot_go_by_one_file(tmp_path):
    path = tmp_path / "r"
    with alone_with(path), pytest.raises(SettingError, match="another betimes sub"), alone_with(path):
        pass
    with alone_with(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_list_of_ids_is_told(tmp_path):
    path = tmp_path / "r"
    path.write_text('{"version": 1, "topics": {"t": 7}}')
    with pytest.raises(SettingError, match="topic t: must be a list of message ids"):
        read_resume_file(path)
