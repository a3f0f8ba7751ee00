"""Are the files that a configuration file names looked for beside it?"""

from __future__ import annotations

import pytest

from betimes.model.errors import SettingError
from betimes.model.server_settings import ServerSettings
from betimes.terminal.server_settings import settings_from


def test_without_a_file_everything_is_as_usual():
    assert settings_from(None) == ServerSettings()


def test_files_are_looked_for_beside_the_configuration(tmp_path):
    (tmp_path / "network.secret").write_text("a long secret of brokers\n")
    config = tmp_path / "broker.toml"
    config.write_text(
        """
        passwords = "p"
        store = "s.db"
        [telemetry]
        directory = "t"
        [network]
        secret_file = "network.secret"
        [[network.links]]
        to = "b2"
        tls = true
        authorities = "ca.pem"
        certificate = "b1.crt"
        key = "b1.key"
        """
    )
    settings = settings_from(config)
    assert settings.passwords == str(tmp_path / "p")
    assert settings.store == str(tmp_path / "s.db")
    assert settings.telemetry is not None
    assert settings.telemetry.directory == str(tmp_path / "t")
    assert settings.network is not None
    assert settings.network.secret == "a long secret of brokers"
    (link,) = settings.network.links
    files = (link.authorities, link.certificate, link.key)
    assert files == tuple(str(tmp_path / name) for name in ("ca.pem", "b1.crt", "b1.key"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('secret_file = "network.secret"', "the secret is too short"),
        ('secret = "a secret that is long enough"\nstrategy = "x"', "strategy"),
    ],
)
def test_a_network_that_cannot_be_is_a_mistake(tmp_path, line, problem):
    (tmp_path / "network.secret").write_text("short\n")
    config = tmp_path / "broker.toml"
    config.write_text(f"[network]\n{line}\n")
    with pytest.raises(SettingError, match=problem):
        settings_from(config)
