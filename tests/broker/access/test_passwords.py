"""Is the right password taken, every other refused, and a damaged file told apart from a right one?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betimes.broker.access import passwords as passwords_module
from betimes.broker.access.passwords import Cost, PasswordFile, PasswordHash, check_password, check_user_name
from betimes.model.errors import BetimesError, FileMistakesError, SettingError

QUICK = Cost(ln=2, r=1, p=1)
SALT_AND_HASH = "AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43


def two_users() -> PasswordFile:
    file = PasswordFile.read("# people\n\n", "passwords")
    return file.with_user("ann", b"apple", QUICK).with_user("bob", b"pear", QUICK)


def test_the_right_password_is_taken_and_others_are_not():
    file = two_users()
    assert file.verify("ann", b"apple")
    assert file.verify("bob", b"pear")
    for name, password in [("ann", b"pear"), ("ann", b""), ("ann", b"apple "), ("eve", b"apple"), ("", b"")]:
        assert not file.verify(name, password)


@settings(max_examples=30)
@given(st.text(max_size=12), st.binary(min_size=1, max_size=80))
def test_a_file_written_and_read_again_knows_its_users(name, password):
    try:
        check_user_name(name)
    except SettingError:
        return
    written = PasswordFile().with_user("first", b"1", QUICK).with_user(name, password, QUICK).text()
    file = PasswordFile.read(written, "passwords")
    assert file.text() == written
    assert file.verify(name, password)
    assert not file.verify(name, password + b"x")


def test_the_hash_of_the_standard_is_found():
    # RFC 7914, section 12: scrypt("password", "NaCl", N=1024, r=8, p=16).
    digest = bytes.fromhex(
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
        "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
    )
    kept = PasswordHash(cost=Cost(ln=10, r=8, p=16), salt=b"NaCl", digest=digest)
    assert kept.fits(b"password")
    assert not kept.fits(b"Password")


def test_what_was_found_right_needs_no_work_again(monkeypatch):
    file = two_users()
    assert file.needs_work("ann", b"apple")
    assert file.verify("ann", b"apple")
    assert not file.needs_work("ann", b"apple")
    assert file.needs_work("ann", b"pear")
    assert file.needs_work("bob", b"apple")
    monkeypatch.setattr(passwords_module, "_scrypt", None)  # a call of which would fail
    assert file.verify("ann", b"apple")


def test_what_was_found_wrong_is_not_remembered():
    file = two_users()
    assert not file.verify("ann", b"pear")
    assert not file.verify("eve", b"pear")
    assert file.needs_work("ann", b"pear")
    assert file.needs_work("eve", b"pear")


def test_an_unknown_user_is_as_much_work_as_a_known_one(monkeypatch):
    file = two_users()
    work = []
    real = passwords_module._scrypt

    def counted(password, salt, cost, length):
        work.append((cost, length))
        return real(password, salt, cost, length)

    monkeypatch.setattr(passwords_module, "_scrypt", counted)
    file.verify("ann", b"wrong")
    file.verify("eve", b"wrong")
    assert work == [(QUICK, 32)] * 2


def test_a_new_password_makes_the_old_one_void():
    file = two_users()
    assert file.verify("ann", b"apple")
    changed = file.with_user("ann", b"plum", QUICK)
    assert not changed.verify("ann", b"apple")
    assert changed.verify("ann", b"plum")
    assert file.verify("ann", b"apple")  # a change makes a new file
    assert len(changed) == 2


def test_other_lines_are_kept_as_they_are():
    text = two_users().text()
    lines = text.splitlines()
    assert lines[:2] == ["# people", ""]
    changed = PasswordFile.read(text, "passwords").with_user("ann", b"plum", QUICK).text().splitlines()
    assert [changed[number] == lines[number] for number in range(4)] == [True, True, False, True]
    assert two_users().without_user("ann").without_user("bob").text() == "# people\n\n"


def test_a_user_who_left_is_not_let_in():
    file = two_users()
    assert file.verify("ann", b"apple")
    without = file.without_user("ann")
    assert "ann" in file
    assert "ann" not in without
    assert not without.verify("ann", b"apple")
    assert without.verify("bob", b"pear")


def test_taking_out_an_unknown_user_says_who_was_meant():
    with pytest.raises(BetimesError, match="did you mean ann"):
        two_users().without_user("anne")


def test_two_users_with_one_password_have_different_lines():
    file = PasswordFile().with_user("ann", b"apple", QUICK).with_user("bob", b"apple", QUICK)
    ann, bob = (line.partition(":")[2] for line in file.text().splitlines())
    assert ann != bob


def test_line_ends_of_windows_and_a_missing_last_one_are_read():
    text = two_users().text()
    for other in (text.replace("\n", "\r\n"), text.removesuffix("\n")):
        assert PasswordFile.read(other, "passwords").text() == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann", "no colon"),
        ("ann:apple", "no hash of the form"),
        ("ann:$7$101$salt$hash", "mosquitto_passwd"),
        (f":$scrypt$ln=14,r=8,p=1${SALT_AND_HASH}", "cannot be empty"),
        (f"a\tb:$scrypt$ln=14,r=8,p=1${SALT_AND_HASH}", "control characters"),
        (f"ann:$scrypt$ln=30,r=8,p=1${SALT_AND_HASH}", "outside what is allowed"),
        (f"ann:$scrypt$ln=0,r=8,p=1${SALT_AND_HASH}", "outside what is allowed"),
        (f"ann:$scrypt$ln=10,r=8,p=99${SALT_AND_HASH}", "outside what is allowed"),
        ("ann:$scrypt$ln=14,r=8,p=1$AAAA$AAAA", "cut off or damaged"),
        (f"ann:$scrypt$ln=14,r=8,p=1$AAAAA${'A' * 43}", "cut off or damaged"),
        (f"ann:$scrypt$ln=14,r=8,p=1${SALT_AND_HASH} ", "no hash of the form"),
    ],
)
def test_a_malformed_line_is_told_with_its_place(line, said):
    with pytest.raises(FileMistakesError, match=said) as caught:
        PasswordFile.read(f"# people\n{line}\n", "etc/passwords")
    assert [mistake.place for mistake in caught.value.mistakes] == ["etc/passwords:2"]
    assert "apple" not in str(caught.value)


def test_all_mistakes_are_told_at_once():
    right = two_users().text()
    with pytest.raises(FileMistakesError) as caught:
        PasswordFile.read(f"{right}ann:x\nbob\n{right}", "p")
    assert [mistake.place for mistake in caught.value.mistakes] == ["p:5", "p:5", "p:6", "p:9", "p:10"]


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "a\0b", " a", "a ", "#a", "a" * 201, "\ud800"])
def test_a_name_that_cannot_be_kept_is_refused(name):
    with pytest.raises(SettingError, match="a user's name"):
        PasswordFile().with_user(name, b"apple", QUICK)


def test_a_password_is_neither_empty_nor_endless():
    for password in (b"", b"x" * 65_536):
        with pytest.raises(BetimesError, match="a password"):
            check_password(password)
    check_password(b"x" * 65_535)


def test_a_new_password_is_kept_at_the_usual_cost():
    assert PasswordFile().with_user("ann", b"apple").text().startswith("ann:$scrypt$ln=14,r=8,p=1$")


def test_too_many_users_are_refused(monkeypatch):
    monkeypatch.setattr(passwords_module, "USERS_MAX", 1)
    with pytest.raises(FileMistakesError, match="2 users, and 1 are allowed"):
        PasswordFile.read(two_users().text(), "p")
