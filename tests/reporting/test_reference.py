"""Does the reference know every key and property that is read, and are its examples right?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from betimes.cli.app import command_names, commands
from betimes.language.files.accounts_file import read_accounts
from betimes.language.files.server_file import read_server_file
from betimes.model import user_properties
from betimes.reporting.reference import ACCOUNT_KEYS, KEYS, PROPERTIES, commands_page, metrics_page

LANGUAGE = Path(__file__).resolve().parents[2] / "src" / "betimes" / "language"
READERS = ("files/server_file.py",)
NOT_PROPERTIES = {"OWN", "NOW", "ALL", "PART", "GAP_TOPIC", "RESERVATION_TOPIC"}


def file_with(table: str, lines: list[str]) -> str:
    """Return a file with these lines in a table, and what else that table needs."""
    if table == "[[buffer.partitions]]":
        return "\n".join([table, *lines])
    if table == "[[network.links]]":
        given = [] if any(line.startswith("to =") for line in lines) else ['to = "south"']
        return "\n".join(["[network]", 'secret = "at least sixteen letters"', table, *given, *lines])
    if table == "[network]" and not any("secret" in line for line in lines):
        lines = ['secret = "at least sixteen letters"', *lines]
    if table == "[telemetry]" and not any(line.startswith("directory") for line in lines):
        lines = ['directory = "t"', *lines]
    return "\n".join([table, *lines])


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.place} {key.name}")
def test_every_example_is_one_that_a_broker_takes(key):
    lines = [f"{key.name} = {key.example}"]
    if key.name in ("key", "client_ca"):
        lines.append('certificate = "broker.crt"')
    if key.name in ("tls", "authorities"):
        lines.append('address = "south.example:1883"')
    if key.name == "authorities" or (key.place == "[[network.links]]" and key.name in ("certificate", "key")):
        lines.append("tls = true")
    read_server_file(file_with(key.place, lines), "reference")


def test_every_key_that_is_read_is_told():
    read = {
        name
        for reader in READERS
        for name in re.findall(r'\.(?:optional|required)\(\s*"(\w+)"', (LANGUAGE / reader).read_text())
    }
    assert read == {key.name for key in KEYS}


@pytest.mark.parametrize("key", ACCOUNT_KEYS, ids=lambda key: key.name)
def test_every_example_of_a_grant_is_one_that_an_account_takes(key):
    read_accounts(f"[default]\n{key.name} = {key.example}", "reference")


def test_every_grant_that_is_read_is_told():
    read = re.findall(r'table\.optional\("(\w+)"', (LANGUAGE / "files" / "accounts_file.py").read_text())
    assert read == [key.name for key in ACCOUNT_KEYS]


def test_every_property_is_told():
    names = {
        value
        for name, value in vars(user_properties).items()
        if name.isupper() and isinstance(value, str) and name not in NOT_PROPERTIES
    }
    assert names == {each.name for each in PROPERTIES}


def test_every_command_is_on_the_page():
    page = commands_page(commands())
    for name in command_names():
        assert f"## betimes {name}" in page


def test_metrics_are_told_with_their_labels():
    page = metrics_page()
    assert "| `betimes_lost_total` | counter | `reason` |" in page
    assert "| `betimes_link_sent_bytes_total` | counter | `neighbour` |" in page
