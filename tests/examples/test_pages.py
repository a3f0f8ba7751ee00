"""Is every command in the README and in docs/ run, or at least one that exists? And every program?

Blocks say by their first line how they are run (`chapters.py`). What is shown only stands below, with the
reason, unless the same command is run on another page.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from tests.examples.chapters import BLOCK, ROOT, blocks, run_page
from tests.examples.moved_ports import moving_commands
from tests.examples.typed import betimes_words, logical_lines, named_files, parsed, unknown_words

PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
         *sorted((ROOT / "docs").rglob("*.md"))]  # fmt: skip
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NO_COMMANDS = {"text", "toml", "json", "sql", "properties", "js", "mermaid"}
MANNERS = {"sh", "sh fails", "sh stays", "sh terminals", "sh shown", "python", "python shown"}
OWN_TESTS = {  # pages whose commands have tests that look closer
    "docs/client.md": "test_client_page.py",
    "docs/guides/cluster.md": "test_cluster_page.py",
    "docs/reservations.md": "test_reservations_page.py",
}
OWN_PROGRAMS = {"docs/client.md": "test_client_page.py", "docs/mqtt.md": "test_mqtt_page.py"}

MAKE = "runs all tests, or makes what they run in"
DEMO = "takes minutes: tests/demo/test_live.py runs it whole"
LIVE = "what tutorial/04 and 06 do, with ports and folders of their own"
THEIRS = "needs files of the reader's own"
PEER = "tests/interop runs Mosquitto's clients with such properties"
SHOWN = {
    "CONTRIBUTING.md": {"make": MAKE},
    "README.md": {"make": MAKE},
    "docs/background/on-time-share.md": {"betimes figure": "an experiment of many minutes"},
    "docs/demo.md": {"make demo": DEMO, "betimes demo": DEMO},
    "docs/guides/matching-at-scale.md": {
        "betimes match": THEIRS, "betimes pipeline run": LIVE, "betimes replay": THEIRS},
    "docs/looking.md": {
        "betimes pipeline run": LIVE, "betimes network": LIVE,
        "betimes twin": "takes tables as tutorial/08 does",
        "betimes dashboard": "tests/reporting/dashboard/test_page.py opens it in a browser"},
    "docs/mqtt.md": {
        "betimes passwd": "asks for a password", "betimes broker --passwords": THEIRS,
        "betimes broker --anonymous --store": "tests/cli/test_broker.py",
        "mosquitto_": PEER, "git clone": "fetches from elsewhere",
        ".venv/bin/python benchmarks/conformance.py": "takes minutes"},
    "docs/promises.md": {
        "mosquitto_sub": PEER, "betimes sub": LIVE, "betimes network": LIVE, "betimes control": LIVE},
    "docs/reservations.md": {"betimes check wrong.toml": "what is wrong in it stands below it"},
    "docs/resuming.md": {"mosquitto_sub": PEER},
    "docs/tutorial/07-a-cluster.md": {
        "betimes pipeline run": "tests/pipeline/spark/test_session_on_cluster.py runs it on a cluster",
        "betimes figure": "likewise"},
}  # fmt: skip
MADE = {  # by which options commands make what others are given
    "simulate": {"telemetry"}, "network": {"telemetry", "control_secret"}, "pipeline run": {"tables"},
    "control": {"tables"}, "report": {"out"}, "match": {"out"}, "replay": {"out"}, "passwd": {"file"},
    "demo": {"out"}, "figure": {"out"}, "sub": {"resume"}, "broker": {"store"},
}  # fmt: skip
GIVEN = {  # what a page takes from elsewhere, and says so
    "docs/guides/matching-at-scale.md": {
        "events.parquet", "subscriptions.csv", "wishes.jsonl", "events", "subscriptions", "wishes.csv",
        "out/live", "out/tables/current/events"},
    "docs/looking.md": {"out/live", "two.toml"},
    "docs/mqtt.md": {"broker.access", "broker.crt", "broker.key"},
    "docs/reservations.md": {"wrong.toml"},
    "docs/tutorial/07-a-cluster.md": {"out/city"},
}  # fmt: skip


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shown(page: Path) -> list[str]:
    """Return the commands of a page that are not run."""
    found = FENCED.findall(page.read_text())
    return [line for manner, text in found if manner == "sh shown" for line in logical_lines(text)]


@cache
def run_anywhere() -> frozenset[str]:
    """Return the commands that are run on some page."""
    texts = [block.text for page in PAGES for block in blocks(page)]
    return frozenset(line for text in texts for line in logical_lines(text))


RUN_HERE = [page for page in PAGES if blocks(page) and "tutorial" not in name(page)
            and name(page) not in OWN_TESTS]  # fmt: skip


@pytest.mark.live
@pytest.mark.parametrize("page", RUN_HERE, ids=name)
def test_every_command_of_a_page_ends_as_it_should(page, tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    run_page(page, folder, moving_commands(tmp_path / "commands"))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page):
    text = page.read_text()
    manners = [manner for manner, _ in FENCED.findall(text)]
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(manners)
    assert set(manners) <= NO_COMMANDS | MANNERS
    assert len(BLOCK.findall(text)) == sum(each.startswith("sh") and each != "sh shown" for each in manners)
    programs = [manner for manner in manners if manner == "python"]
    assert not programs or name(page) in OWN_PROGRAMS


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_not_run_has_a_reason(page):
    reasons = SHOWN.get(name(page), {})
    lines = [line for line in shown(page) if line not in run_anywhere()]
    assert [line for line in lines if not any(line.startswith(each) for each in reasons)] == []
    assert [each for each in reasons if not any(line.startswith(each) for line in lines)] == [], (
        "they are run"
    )


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=name)
def test_what_is_not_run_would_be_taken(page):
    there = set(GIVEN.get(name(page), ()))
    for line in shown(page):
        for words in betimes_words(line):
            command, values = parsed(words)
            for option, file in named_files(values):
                if option in MADE.get(command, ()):
                    there.add(file)
                assert file in there or (ROOT / file).exists() or file == "out", f"{line}: what is {file}?"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_that_are_shown_ask_for_what_there_is(page):
    for manner, text in FENCED.findall(page.read_text()):
        if manner != "python shown":
            continue
        program = compile(text, name(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(program):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module or "")
                assert [each.name for each in node.names if not hasattr(module, each.name)] == []


def test_pages_with_tests_of_their_own_have_them():
    for page, test in (OWN_TESTS | OWN_PROGRAMS).items():
        assert page.partition("/")[2].rpartition("/")[2] in (Path(__file__).parent / test).read_text(), test


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_that_a_sentence_names_has_the_options_it_is_said_to_have(page):
    prose = FENCED.sub("", page.read_text())
    for code in re.findall(r"`(?:\.venv/bin/)?(betimes [a-z][^`\n]*)`", prose):
        assert unknown_words(code.split()[1:]) == [], code
