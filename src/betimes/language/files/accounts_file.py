"""The accounts file: what users, groups of users and anonymous clients are granted.

TOML in, `AccountSettings` out; every table and key is optional. One `FileMistakesError` lists all mistakes.
"""

from __future__ import annotations

import math

from betimes.language.files.scenario_file import data_rate, duration
from betimes.language.files.table_reader import (
    PRICE_MAX,
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    described,
    number_between,
    positive,
    quantity,
    read_toml,
)
from betimes.language.quantities import read_size_kb
from betimes.language.suggestions import quoted
from betimes.model.account_settings import COUNT_UNBOUNDED, AccountSettings, Grants, Group

MEMBERS_MAX = 100_000
ACCOUNTS_MAX = 100_000
_money = number_between(0.0, 1e12)
_rate = number_between(0.01, COUNT_UNBOUNDED)
_size_kb = positive(quantity(read_size_kb, "64MB"))
_count = count_between(0, COUNT_UNBOUNDED)


def read_accounts(text: str, source: str) -> AccountSettings:
    """Return the accounts in a file; `source` is the file's name in messages."""
    mistakes = Mistakes()
    top = TomlTable(read_toml(text, source), "", mistakes)
    default = top.nested("default", lambda table: _read_grants(table, Grants()), Grants())
    users: dict[str, Grants] = {}
    for user, table in _named_tables(top, "users"):
        users[user] = _read_grants(table, default)
        table.close()
    groups: dict[str, Group] = {}
    for group, table in _named_tables(top, "groups"):
        members = table.required("members", _members, frozenset[str](), '["alice", "bob"]')
        _complain_of_two_accounts(table, members, users, groups)
        groups[group] = Group(members=members, grants=_read_grants(table, default))
        table.close()
    settings = AccountSettings(
        anonymous=top.nested("anonymous", lambda table: _read_grants(table, Grants()), None),
        default=default,
        users=users,
        groups=groups,
    )
    top.close()
    mistakes.raise_if_any(source)
    return settings


def _named_tables(top: TomlTable, key: str) -> list[tuple[str, TomlTable]]:
    """Return the tables [key.NAME] with their names."""
    table = top.table(key)
    if table is None:
        return []
    names = list(table)
    if len(names) > ACCOUNTS_MAX:
        table.complain(key, f"there are {len(names):,} of them, and {ACCOUNTS_MAX:,} are allowed")
    found = [(name, table.table(name)) for name in names[:ACCOUNTS_MAX]]
    return [(name, each) for name, each in found if each is not None]


def _read_grants(table: TomlTable, usual: Grants) -> Grants:
    return Grants(
        price_max=table.optional("price", number_between(0.0, PRICE_MAX), usual.price_max),
        money_per_s_max=table.optional("money", _money, usual.money_per_s_max),
        reserved_kb_per_s_max=table.optional("bandwidth", data_rate, usual.reserved_kb_per_s_max),
        unused_s_max=table.optional("unused", positive(duration), usual.unused_s_max),
        sessions_max=table.optional("sessions", _count, usual.sessions_max),
        subscriptions_max=table.optional("subscriptions", _count, usual.subscriptions_max),
        publications_per_s_max=table.optional("publish_rate", _rate, usual.publications_per_s_max),
        memory_bytes_max=table.optional("memory", _bytes, usual.memory_bytes_max),
    )


def _bytes(value: object) -> int:
    return math.ceil(_size_kb(value) * 1000.0)


def _members(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not value:
        raise WrongValueError(f"a list of user names was expected here, not {described(value)}")
    if len(value) > MEMBERS_MAX:
        raise WrongValueError(f"there are {len(value):,} of them, and {MEMBERS_MAX:,} are allowed")
    return frozenset(any_text(each) for each in value)


def _complain_of_two_accounts(
    table: TomlTable, members: frozenset[str], users: dict[str, Grants], groups: dict[str, Group]
) -> None:
    """Note each member that has an account already: a user has one."""
    for member in sorted(members):
        others = [name for name, group in groups.items() if member in group.members]
        if member in users:
            table.complain("members", f"{quoted(member)} has the account users.{member} already")
        elif others:
            table.complain("members", f"{quoted(member)} is a member of groups.{others[0]} already")
