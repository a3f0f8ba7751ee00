"""Is an accounts file read whole, and is each mistake told at its place?"""

from __future__ import annotations

import math

import pytest

from betimes.language.files.accounts_file import read_accounts
from betimes.model.account_settings import Grants
from betimes.model.errors import FileMistakesError

EVERYTHING = """
[anonymous]
price = 1
[default]
price = 20
subscriptions = 100
[users.ann]
price = 50
money = 200
bandwidth = "40KB/s"
unused = "5m"
sessions = 5
publish_rate = 100
memory = "1MB"
[groups.trucks]
members = ["t1", "t2"]
money = 10
"""


def test_every_key_is_read_and_users_inherit_from_the_default():
    settings = read_accounts(EVERYTHING, "accounts.toml")
    assert settings.anonymous == Grants(price_max=1.0)
    assert settings.users["ann"] == Grants(
        price_max=50.0,
        money_per_s_max=200.0,
        reserved_kb_per_s_max=40.0,
        unused_s_max=300.0,
        sessions_max=5,
        subscriptions_max=100,
        publications_per_s_max=100.0,
        memory_bytes_max=1_000_000,
    )
    group = settings.groups["trucks"]
    assert group.members == {"t1", "t2"}
    assert (group.grants.price_max, group.grants.money_per_s_max) == (20.0, 10.0)


def test_an_empty_file_leaves_everything_as_it_is_by_default():
    settings = read_accounts("", "accounts.toml")
    assert (settings.anonymous, settings.default, settings.users) == (None, Grants(), {})
    assert settings.default.money_per_s_max == math.inf


def test_a_grant_of_nothing_can_be_written():
    text = '[anonymous]\nprice = 0\nmoney = 0\nbandwidth = "0KB/s"\nsessions = 0\nsubscriptions = 0'
    grants = read_accounts(text, "accounts.toml").anonymous
    assert grants is not None
    assert (grants.price_max, grants.reserved_kb_per_s_max, grants.sessions_max) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("[user.ann]\nprice = 1", "user", "not known here"),
        ("[users.ann]\nprices = 1", "users.ann.prices", "not known here"),
        ("[users]\nann = 3", "users.ann", "table"),
        ("[users.ann]\nprice = -1", "users.ann.price", "between"),
        ("[users.ann]\nbandwidth = 20", "users.ann.bandwidth", "expected"),
        ("[users.ann]\nsessions = 1.5", "users.ann.sessions", "whole number"),
        ("[groups.g]\nprice = 1", "groups.g.members", "missing"),
        ('[groups.g]\nmembers = "ann"', "groups.g.members", "list"),
        ('[users.ann]\n[groups.g]\nmembers = ["ann"]', "groups.g.members", "users.ann already"),
        (
            '[groups.g]\nmembers = ["ann"]\n[groups.h]\nmembers = ["ann"]',
            "groups.h.members",
            "groups.g already",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(text, place, problem):
    with pytest.raises(FileMistakesError) as raised:
        read_accounts(text, "accounts.toml")
    (mistake,) = raised.value.mistakes
    assert mistake.place == place
    assert problem in mistake.problem
