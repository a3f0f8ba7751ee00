"""Is what changed written once, and nothing else?"""

from __future__ import annotations

from betimes.broker.storage.change_tables import NumberedTable, Table


def some_table() -> tuple[Table, set[Table]]:
    changed: set[Table] = set()
    return Table("t", key="a TEXT, b INTEGER", values="c TEXT", changed=changed), changed


def test_the_last_word_on_a_key_is_what_is_written():
    table, changed = some_table()
    table.put(("x", 1), ("old",))
    table.put(("x", 1), ("new",))
    table.put(("y", 1), ("gone",))
    table.remove(("y", 1))
    assert changed == {table}
    changes = table.take()
    assert (changes.put, changes.removed) == ([("x", 1, "new")], [("y", 1)])
    assert changes.table is table


def test_what_was_taken_is_not_taken_again():
    table, changed = some_table()
    table.put(("x", 1), ("new",))
    table.take()
    assert changed == set()
    changes = table.take()
    assert (changes.put, changes.removed) == ([], [])


def test_columns_begin_with_those_of_the_key():
    table, _ = some_table()
    assert table.columns == ["a", "b", "c"]
    assert table.key_columns == ["a", "b"]


def test_numbers_go_up_and_begin_after_those_that_are_taken():
    table = NumberedTable("t", values="v TEXT", changed=set())
    table.start_after(7)
    assert [table.add(("x",)), table.add(("y",))] == [8, 9]
    assert table.take().put == [(8, "x"), (9, "y")]


def test_a_row_that_came_and_went_between_two_commits_is_never_written():
    table = NumberedTable("t", values="v TEXT", changed=set())
    stays, goes = table.add(("stays",)), table.add(("goes",))
    table.remove((goes,))
    first = table.take()
    assert (first.put, first.removed) == ([(stays, "stays")], [])
    table.remove((stays,))
    second = table.take()
    assert (second.put, second.removed) == ([], [(stays,)])
