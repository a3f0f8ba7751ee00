"""Does `betimes dashboard` say what is wrong before it begins?"""

from __future__ import annotations

import socket

import pytest

from betimes.cli.app import run
from betimes.cli.dashboard import check_port, metrics_address
from betimes.model.errors import BetimesError, SettingError
from betimes.terminal.exit_codes import MISTAKE


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--metrics"),
        (["--metrics", "here"], "not a host and port"),
        (["--metrics", "127.0.0.1:99999"], "not a host and port"),
        (["--metrics", "ftp://127.0.0.1:9"], "not a host and port"),
        (["--metrics", "127.0.0.1:9", "--url", "http://x"], "http://x"),
        (["--metrics", "127.0.0.1:9", "--users", "no/such/file"], "no/such/file"),
        (["--metrics", "127.0.0.1:9", "--port", "0"], "--port"),
        (["--metrics", "127.0.0.1:9", "--host", "no.such.host.invalid"], "hint: the host must be"),
    ],
)
def test_a_mistake_gets_one_message(capsys, arguments, said):
    assert run(["dashboard", *arguments]) == MISTAKE
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_a_port_that_is_taken_is_told():
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        pytest.raises(BetimesError, match="cannot listen there"),
    ):
        check_port("127.0.0.1", there.getsockname()[1])


def test_an_address_may_be_short_or_whole():
    assert metrics_address("[::1]:9101") == "http://[::1]:9101/metrics"
    assert metrics_address("https://b1:9101/") == "https://b1:9101/metrics"
    assert metrics_address("http://b1:9101/brokers/1") == "http://b1:9101/brokers/1"
    with pytest.raises(SettingError):
        metrics_address("b1:port")
