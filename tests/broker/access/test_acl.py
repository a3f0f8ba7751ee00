"""Does an access list of Mosquitto's allow and refuse what it says, and no more?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.access import acl as access_module
from betimes.broker.access.acl import AccessList
from betimes.model.errors import FileMistakesError

EXAMPLE = """\
# A house
topic read $SYS/#
topic read public/+

user ann
topic readwrite house/#
topic deny house/safe/#
topic write log/ann
topic read with space/in it

user bob
topic house/hall

pattern write sensor/%u/data
pattern read client/%c/#
pattern deny client/%c/secret
"""


def example() -> AccessList:
    return AccessList.read(EXAMPLE, "acl")


def test_lines_before_any_user_are_for_clients_without_a_name():
    access = example()
    assert access.rights(None, "c").may_read("public/news")
    assert access.rights(None, "c").may_read("$SYS/load")
    assert not access.rights(None, "c").may_write("public/news")
    assert not access.rights("ann", "c").may_read("public/news")
    assert not access.rights("eve", "c").may_read("public/news")


def test_lines_after_a_user_are_for_that_user():
    access = example()
    assert access.rights("ann", "c").may_read("house/kitchen/light")
    assert access.rights("ann", "c").may_write("house")
    assert access.rights("ann", "c").may_write("log/ann")
    assert not access.rights("ann", "c").may_read("log/ann")
    assert access.rights("ann", "c").may_read("with space/in it")
    assert not access.rights("bob", "c").may_read("house/kitchen/light")
    assert access.rights("bob", "c").may_read("house/hall")
    assert access.rights("bob", "c").may_write("house/hall")


def test_a_deny_line_wins_wherever_it_stands():
    access = example()
    assert not access.rights("ann", "c").may_read("house/safe")
    assert not access.rights("ann", "c").may_write("house/safe/door")


def test_what_no_line_allows_is_refused():
    assert not example().rights("eve", "c").may_read("house/hall")
    empty = AccessList.read("", "acl")
    assert not empty.rights(None, "c").may_read("a")
    assert not empty.rights("ann", "c").may_write("a")
    assert not empty.rights("ann", "c").may_subscribe("#")


def test_pattern_lines_are_for_everybody_with_their_own_names():
    access = example()
    for user in ("ann", "bob", "eve"):
        assert access.rights(user, "c").may_write(f"sensor/{user}/data")
        assert not access.rights(user, "c").may_write("sensor/other/data")
        assert access.rights(user, "c7").may_read("client/c7/x")
        assert not access.rights(user, "c7").may_read("client/c7/secret")
        assert not access.rights(user, "c7").may_read("client/c8/x")
    assert not access.rights(None, "c").may_write("sensor/None/data")
    assert not access.rights(None, "c").may_write("sensor/%u/data")
    assert not access.rights(None, "c").may_write("sensor//data")


def test_a_topic_line_that_allows_wins_over_a_pattern_line_that_denies():
    access = AccessList.read("pattern deny #\nuser ann\ntopic read a", "acl")
    assert access.rights("ann", "c").may_read("a")
    assert not access.rights("ann", "c").may_read("b")


@pytest.mark.parametrize("name", ["+", "#", "a/b", "a+", "#a", "/", "+/+"])
def test_a_name_with_a_wildcard_or_a_slash_widens_nothing(name):
    access = AccessList.read("pattern read users/%u/#\npattern read clients/%c/#\npattern read all", "acl")
    for topic in ("users/ann/x", "clients/c/x", f"users/{name}/x", f"clients/{name}/x", "users/a/b/x"):
        assert not access.rights(name, name).may_read(topic)
    assert access.rights(name, name).may_read("all")
    assert access.rights("ann", name).may_read("users/ann/x")  # the line does not need the other name
    assert not access.rights(name, name).may_subscribe("users/#")


def test_a_name_that_cannot_be_filled_in_does_not_escape_a_deny_line():
    access = AccessList.read("pattern read rooms/#\npattern deny rooms/%c/private", "acl")
    assert access.rights("ann", "c").may_read("rooms/d/private")
    assert not access.rights("ann", "c").may_read("rooms/c/private")
    assert not access.rights("ann", "c/+").may_read("rooms/c/private")
    assert not access.rights("ann", "c/+").may_read("rooms/d")


def test_a_name_brings_no_dollar_to_the_beginning():
    access = AccessList.read("pattern readwrite %c/#\npattern read x/%c", "acl")
    assert not access.rights(None, "$SYS").may_read("$SYS/load")
    assert access.rights(None, "$SYS").may_read("x/$SYS")
    assert access.rights(None, "dev").may_write("dev/a")


def test_a_client_called_like_a_placeholder_stays_what_it_is():
    access = AccessList.read("pattern read %c/%u", "acl")
    assert access.rights("ann", "%u").may_read("%u/ann")
    assert not access.rights("ann", "%u").may_read("ann/ann")


def test_text_around_a_name_is_kept():
    access = AccessList.read("pattern read devices/dev-%c/#", "acl")
    assert access.rights(None, "7").may_read("devices/dev-7/x")
    assert not access.rights(None, "7").may_read("devices/7/x")


def test_a_topic_line_takes_placeholders_as_letters():
    access = AccessList.read("topic read a/%c", "acl")
    assert access.rights(None, "c").may_read("a/%c")
    assert not access.rights(None, "c").may_read("a/c")


def test_wildcards_in_front_do_not_reach_what_begins_with_a_dollar():
    access = AccessList.read("topic #\n", "acl")
    assert access.rights(None, "c").may_write("a")
    assert not access.rights(None, "c").may_write("$SYS/a")
    assert not access.rights(None, "c").may_subscribe("$SYS/#")


@pytest.mark.parametrize(
    ("user", "pattern", "granted"),
    [
        ("ann", "house/#", True),
        ("ann", "#", True),
        ("ann", "+/kitchen", True),
        ("ann", "house/safe/+", True),  # granted, and `may_read` then lets nothing through
        ("ann", "house/safe", False),
        ("ann", "log/ann", False),
        ("ann", "log/+", False),
        ("ann", "$share/g/house/+", True),
        ("ann", "$share/g/log/+", False),
        ("eve", "house/#", False),
        ("eve", "client/#", True),
        (None, "$SYS/#", True),
        (None, "public/a/b", False),
    ],
)
def test_a_subscription_is_granted_if_it_could_bring_anything(user, pattern, granted):
    assert example().rights(user, "c").may_subscribe(pattern) == granted


def test_a_decision_is_made_once_and_remembered(monkeypatch):
    access = example()
    rights = access.rights("ann", "c")
    assert rights.may_read("house/x")
    monkeypatch.setattr(access_module, "topic_matches", None)  # a call of which would fail
    assert rights.may_read("house/x")
    assert access.rights("ann", "c").may_read("house/x")


def test_clients_share_what_is_remembered_where_no_line_names_them():
    access = AccessList.read("topic read a", "acl")
    assert access.rights(None, "c") is access.rights(None, "d")
    assert example().rights("ann", "c") is not example().rights("ann", "d")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(access_module, "DECISIONS_REMEMBERED_MAX", 10)
    monkeypatch.setattr(access_module, "CLIENTS_REMEMBERED_MAX", 3)
    access = example()
    kept = [access.rights("ann", f"c{number}") for number in range(20)]
    for number in range(100):
        rights = kept[number % 20]
        assert rights.may_read(f"house/{number}")
        assert not rights.may_write(f"no/{number}")
        assert sum(len(each._readable) + len(each._writable) for each in kept) <= 10
    assert len(access._rights) <= 3
    assert kept[0].may_read("house/" + "x" * 1000)
    assert "house/" + "x" * 1000 not in kept[0]._readable


def test_all_mistakes_are_told_at_once_with_their_lines():
    text = "topci a\nuser\ntopic\ntopic read\n  # fine\ntopic raed a\npattern a/b#\npattern %u-%c\ntopic a"
    with pytest.raises(FileMistakesError) as caught:
        AccessList.read(text, "acl")
    places = [mistake.place for mistake in caught.value.mistakes]
    assert places == ["acl:1", "acl:2", "acl:3", "acl:4", "acl:6", "acl:7", "acl:8"]
    said = str(caught.value)
    for words in (
        "did you mean topic?",
        "write user NAME",
        "the topic is missing",
        "after read the topic is missing",
        "did you mean read?",
        "# must be alone in its level",
        "give %u and %c a level each",
    ):
        assert words in said


def test_tabs_spaces_and_line_ends_of_windows_are_read():
    access = AccessList.read("\tuser  ann\t\r\n  topic \t read   a/b \r\n", "acl")
    assert access.rights("ann", "c").may_read("a/b")
    assert not access.rights("ann", "c").may_write("a/b")


def test_a_user_named_twice_has_the_lines_of_both():
    access = AccessList.read("user ann\ntopic a\nuser bob\ntopic b\nuser ann\ntopic c", "acl")
    assert [access.rights("ann", "c").may_read(topic) for topic in "abc"] == [True, False, True]


def test_an_endless_file_is_refused(monkeypatch):
    monkeypatch.setattr(access_module, "LINES_MAX", 3)
    with pytest.raises(FileMistakesError, match="5 lines, and 3 are allowed"):
        AccessList.read("topic a\n" * 4, "acl")


topics = st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=3).map("/".join).filter(bool)
patterns = st.lists(st.sampled_from(["a", "b", "+", "%u", "%c"]), min_size=1, max_size=3).map("/".join)
lines = st.builds(
    "{} {} {}".format,
    st.sampled_from(["topic", "pattern"]),
    st.sampled_from(["read", "write", "readwrite", "deny"]),
    patterns,
)
clients = st.text("abc+#/$%u", max_size=3)


@given(st.lists(lines, max_size=6), st.none() | clients, clients, topics)
def test_what_may_be_read_may_be_subscribed_to(written, user, client, topic):
    access = AccessList.read("\n".join(written), "acl")
    if access.rights(user, client).may_read(topic):
        for pattern in (topic, "#", "+" + topic[topic.find("/") :] if "/" in topic else "+"):
            assert access.rights(user, client).may_subscribe(pattern)


@given(st.lists(lines, max_size=6), st.none() | clients, clients, topics)
def test_one_more_deny_line_allows_nothing_new(written, user, client, topic):
    before = AccessList.read("\n".join(written), "acl")
    after = AccessList.read("\n".join([*written, "pattern deny a/%c", "topic deny b/+"]), "acl")
    assert before.rights(user, client).may_read(topic) or not after.rights(user, client).may_read(topic)
    assert before.rights(user, client).may_write(topic) or not after.rights(user, client).may_write(topic)
