"""Does only who may come in come in, and with the rights of who they proved to be?"""

from __future__ import annotations

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile

USERS = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
LIST = AccessList.read("topic read open\nuser ann\ntopic readwrite ann/#\n", "list")


def test_nobody_comes_in_unless_it_is_said():
    assert AccessControl().admits(None, None) is False
    assert AccessControl().admits("ann", b"secret") is False
    assert AccessControl(anonymous=True).admits(None, None) is True
    assert AccessControl(passwords=USERS).admits(None, b"secret") is False


def test_a_password_is_looked_at_where_that_may_take_long():
    access_control = AccessControl(passwords=PasswordFile().with_user("ann", b"secret", Cost(ln=4)))
    assert access_control.admits("ann", b"secret") is None
    assert access_control.prove("ann", b"secret")
    assert access_control.admits("ann", b"secret") is True  # it is remembered
    assert access_control.admits("ann", b"wrong") is None
    assert not access_control.prove("ann", b"wrong")
    assert not access_control.prove("bob", b"secret")
    assert access_control.admits("ann", None) is False
    assert not access_control.prove(None, None)


def test_with_passwords_and_anonymous_a_name_must_still_be_proved():
    access_control = AccessControl(
        anonymous=True, passwords=PasswordFile().with_user("ann", b"secret", Cost(ln=4))
    )
    assert access_control.admits(None, None) is True
    assert access_control.admits("ann", b"wrong") is None
    assert access_control.admits("ann", None) is False


def test_a_name_that_nobody_proved_gives_no_rights():
    read_access_control = AccessControl(anonymous=True, access=LIST)
    user = read_access_control.proven_user("ann")
    assert user is None
    rights = read_access_control.rights(user, "c")
    assert rights is not None
    assert not rights.may_read("ann/mail")
    assert rights.may_read("open")
    closed = AccessControl(passwords=USERS, access=LIST)
    rights = closed.rights(closed.proven_user("ann"), "c")
    assert rights is not None
    assert rights.may_write("ann/mail")


def test_without_a_list_everything_is_allowed():
    assert AccessControl(anonymous=True).rights(None, "c") is None
