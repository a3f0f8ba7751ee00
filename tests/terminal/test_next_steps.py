"""Can what is shown as the next step be typed as it stands?"""

from __future__ import annotations

import shutil
import sys

from betimes.terminal.next_steps import print_next, typed


def test_a_command_is_shown_with_its_path_where_the_shell_would_not_find_it(monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/betimes", "demo"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert typed("betimes figures") == ".venv/bin/betimes figures"
    monkeypatch.setattr(shutil, "which", lambda name: "here")
    assert typed("betimes figures") == "betimes figures"


def test_each_command_stands_on_a_line_with_what_it_is_about(capsys):
    print_next({"betimes a": "first", "betimes longer [b]": "second"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "what to try next:"
    assert [line.split()[-1] for line in lines[2:]] == ["first", "second"]
    assert lines[2].index("first") == lines[3].index("second")
    assert "[b]" in lines[3]
