"""Does the highest number stay the highest, also in the next life?"""

from __future__ import annotations

from betimes.broker.storage.change_tables import Table
from betimes.broker.storage.newest_numbers import NewestNumbers


def test_a_number_never_goes_back():
    numbers = NewestNumbers(None, {"model": 5})
    numbers.note("model", 3)
    assert numbers.get("model") == 5
    numbers.note("model", 6)
    assert (numbers.get("model"), numbers.get("alarm")) == (6, 0)


def test_what_is_noted_goes_to_the_table_once():
    changed: set[Table] = set()
    table = Table("facts", key="name TEXT", values="value INTEGER NOT NULL", changed=changed)
    numbers = NewestNumbers(table, {})
    numbers.note("model", 7)
    numbers.note("model", 7)
    assert changed == {table}
    assert table.take().put == [("model", 7)]
