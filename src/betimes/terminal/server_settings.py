"""Reading of a broker's configuration file and of the files that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from betimes.broker.access.setting_files import secret_in
from betimes.language.files.server_file import read_server_file
from betimes.model.network_settings import NetworkSettings
from betimes.model.server_settings import ServerSettings
from betimes.terminal.files import read_text_file

WAYS_IN = (
    "pass a password file (betimes passwd writes one) with --passwords, or accept all clients: --anonymous"
)


def settings_from(config: Path | None) -> ServerSettings:
    """Return the settings in a file, or the defaults; paths are relative to the file."""
    if config is None:
        return ServerSettings()
    settings = read_server_file(read_text_file(config), str(config))

    def beside(name: str | None) -> str | None:
        return None if name is None else str(config.parent / name)

    telemetry = settings.telemetry
    control = beside(settings.control_secret_file)
    return replace(
        settings,
        control_secret="" if control is None else read_secret(Path(control), "control_secret_file"),
        control_secret_file=control,
        network=None if settings.network is None else _with_files(settings.network, config),
        store=beside(settings.store),
        telemetry=telemetry and replace(telemetry, directory=str(config.parent / telemetry.directory)),
        passwords=beside(settings.passwords),
        access=beside(settings.access),
        certificate=beside(settings.certificate),
        key=beside(settings.key),
        client_ca=beside(settings.client_ca),
        more_doors=tuple(
            replace(
                door,
                certificate=beside(door.certificate),
                key=beside(door.key),
                client_ca=beside(door.client_ca),
            )
            for door in settings.more_doors
        ),
    )


def read_secret(path: Path, setting: str) -> str:
    """Return the secret in the file that a setting names."""
    return secret_in(path, setting, read_text_file)


def _with_files(network: NetworkSettings, config: Path) -> NetworkSettings:
    """Return network settings with the secret, and with paths of certificates relative to the file."""
    from betimes.scheduling.strategies import strategy_named

    secret = network.secret
    if network.secret_file is not None:
        secret = read_secret(config.parent / network.secret_file, "network.secret_file")
    strategy_named(network.strategy)

    def beside(name: str | None) -> str | None:
        return None if name is None else str(config.parent / name)

    links = tuple(
        replace(
            each,
            authorities=beside(each.authorities),
            certificate=beside(each.certificate),
            key=beside(each.key),
        )
        for each in network.links
    )
    return replace(network, secret=secret, links=links)
