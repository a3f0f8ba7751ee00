"""Are the files that settings name read, and is one that cannot be read an error with its name?"""

from __future__ import annotations

import pytest

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.access.setting_files import open_access, read_file, secret_in, with_secrets
from betimes.model.errors import BetimesError
from betimes.model.network_settings import NetworkSettings
from betimes.model.server_settings import ServerSettings


def test_without_files_the_settings_alone_decide():
    assert open_access(ServerSettings(anonymous=True)) == AccessControl(anonymous=True)
    assert with_secrets(ServerSettings()) == ServerSettings()


def test_users_and_rights_come_from_their_files(tmp_path):
    users, access = tmp_path / "users", tmp_path / "access"
    users.write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    access.write_text("topic read open\n")
    control = open_access(ServerSettings(passwords=str(users), access=str(access)))
    assert control.prove("ann", b"secret")
    rights = control.rights("ann", "c")
    assert rights is not None
    assert not rights.may_write("open")


def test_a_secret_is_read_where_only_its_file_is_named(tmp_path):
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")
    network = NetworkSettings(secret_file=str(file))
    found = with_secrets(ServerSettings(network=network, control_secret_file=str(file)))
    assert found.network is not None
    assert (found.network.secret, found.control_secret) == ("0123456789abcdef",) * 2
    file.write_text("short")
    with pytest.raises(BetimesError, match="too short"):
        secret_in(file, "secret_file")


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin").write_bytes(b"\xff")
    for path in (tmp_path, tmp_path / "latin"):
        with pytest.raises(BetimesError, match=rf"{path}: cannot be read"):
            read_file(path)
