"""Does the command start a broker only for whom it may serve, and end it when told to?"""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mqtt5
import pytest
import trustme

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.cli.app import run
from betimes.cli.broker import read_access_control, run_broker
from betimes.model.errors import BetimesError
from betimes.model.server_settings import ServerSettings
from betimes.terminal.exit_codes import MISTAKE
from betimes.terminal.parent import child_options

WITHIN_S = 60.0  # far more than it takes


@contextmanager
def started(*arguments: str, kind: str = "MQTT") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the command on a free port; yield it and the port it printed."""
    code = "from betimes.cli.main import main; main()"
    command = [sys.executable, "-c", code, "broker", "--port", "0", *arguments]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **child_options()
    )
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        found = re.fullmatch(rf"(\S+): {kind} at 127\.0\.0\.1:(\d+)\n", line)
        assert found, line or running.communicate()[1]
        yield running, int(found.group(2))
    finally:
        running.kill()
        running.communicate()


def connack(port: int, **connect) -> int:
    """Connect and return the reason code of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as client:
        client.sendall(mqtt5.ConnectPacket("c", **connect).write())
        packet, _ = mqtt5.read(memoryview(client.recv(1000)))
        assert isinstance(packet, mqtt5.ConnAckPacket)
        return packet.reason_code.value


def test_a_broker_that_nobody_could_connect_to_does_not_start(capsys):
    assert run(["broker"]) == MISTAKE
    said = capsys.readouterr()
    assert said.out == ""
    assert "--passwords" in said.err
    assert "--anonymous" in said.err


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "must be between 0 and 65535"),
        (["--name", " "], "printable"),
        (["--passwords", "none"], "no such file"),
        (["--access", "none"], "no such file"),
        (["--port", "0", "--store", "none/s.db"], "none/s.db: cannot be opened for writing"),
        (["none.toml"], "no such file"),
        (["--host", "no.such.host.invalid", "--port", "0"], "cannot listen there"),
        (["--tls-certificate", "none"], "no such file"),
        (["--metrics-port", "-1"], "must be between 0 and 65535"),
        (["--tls-key", "none"], "needs --tls-certificate"),
    ],
)
def test_a_mistake_is_one_message(arguments, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(["broker", "--anonymous", *arguments]) == MISTAKE
    out, err = capsys.readouterr()
    assert said in err
    assert (out, "Traceback" in err) == ("", False)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path, capsys):
    config = tmp_path / "broker.toml"
    config.write_text("port = 'x'\nspeed = 3\n")
    assert run(["broker", str(config)]) == MISTAKE
    said = capsys.readouterr().err
    assert "2 mistakes" in said


def test_the_gate_is_what_the_files_say(tmp_path):
    users, access = tmp_path / "users", tmp_path / "list"
    users.write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    access.write_text("topic read open\n")
    access_control = read_access_control(ServerSettings(passwords=str(users), access=str(access)))
    assert access_control.prove("ann", b"secret")
    assert access_control.admits(None, None) is False
    assert read_access_control(ServerSettings(anonymous=True)) == AccessControl(anonymous=True)
    with pytest.raises(BetimesError, match="would reject every client"):
        read_access_control(ServerSettings())


def test_what_is_given_wins_over_the_file_and_files_are_looked_for_beside_it(tmp_path, monkeypatch):
    seen: list[ServerSettings] = []
    monkeypatch.setattr(
        "betimes.cli.broker.run_broker", lambda settings, access_control: seen.append(settings)
    )
    (tmp_path / "users").write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    config = tmp_path / "broker.toml"
    config.write_text(
        'name = "file"\nport = 1\npasswords = "users"\nstore = "s.db"\n[limits]\nsessions = 7\n'
    )
    assert run(["broker", str(config), "--port", "2", "--host", "::1"]) == 0
    (settings,) = seen
    assert (settings.name, settings.port, settings.host, settings.anonymous) == ("file", 2, "::1", False)
    assert Path(settings.passwords or "") == tmp_path / "users"
    assert Path(settings.store or "") == tmp_path / "s.db"
    assert settings.limits.sessions_max == 7


def test_files_of_certificates_are_looked_for_beside_the_file_too(tmp_path, monkeypatch):
    seen: list[ServerSettings] = []
    monkeypatch.setattr(
        "betimes.cli.broker.run_broker", lambda settings, access_control: seen.append(settings)
    )
    config = tmp_path / "broker.toml"
    config.write_text('certificate = "a"\n[[listen]]\ncertificate = "b"\nkey = "c"\nclient_ca = "d"\n')
    assert run(["broker", str(config), "--anonymous"]) == 0
    assert run(["broker", str(config), "--anonymous", "--tls-certificate", "e", "--tls-key", "f"]) == 0
    (first, second), (given, _) = (settings.doors for settings in seen)
    assert (first.certificate, first.key, first.port) == (str(tmp_path / "a"), None, 8883)
    names = (second.certificate, second.key, second.client_ca)
    assert names == tuple(str(tmp_path / name) for name in "bcd")
    assert (given.certificate, given.key) == ("e", "f")


def test_help_shows_the_tables_of_the_file(capsys):
    assert run(["broker", "--help"]) == 0
    said = capsys.readouterr().out
    assert "[limits]" in said
    assert "[[listen]]" in said


def test_a_port_that_is_taken_is_a_mistake():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BetimesError, match="cannot listen there"):
            run_broker(ServerSettings(port=port), AccessControl(anonymous=True))


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_serves_and_ends_well_when_told_to(number):
    with started("--anonymous", "--verbose", "--name", "b7") as (running, port):
        assert connack(port) == 0
        with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as client:
            client.sendall(mqtt5.ConnectPacket("stays").write())
            assert client.recv(1000)
            running.send_signal(number)
            packet, _ = mqtt5.read(memoryview(client.recv(1000)))
            assert isinstance(packet, mqtt5.DisconnectPacket)
        _, err = running.communicate(timeout=WITHIN_S)
        assert running.returncode == 0
        assert 'level=info from=socket_line message="connected: 127.0.0.1:' in err
        assert "Traceback" not in err


@pytest.mark.live
def test_metrics_and_health_have_a_port_of_their_own():
    with started("--anonymous", "--metrics-port", "0") as (running, port):
        assert running.stdout is not None
        found = re.fullmatch(
            r"betimes: metrics at (http://127\.0\.0\.1:\d+)/metrics\n", running.stdout.readline()
        )
        assert found
        with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as client:
            client.sendall(mqtt5.ConnectPacket("c").write())
            assert client.recv(1000)
            with urllib.request.urlopen(f"{found.group(1)}/metrics", timeout=WITHIN_S) as page:
                assert page.headers["Content-Type"].startswith("text/plain; version=")
                assert b"\nbetimes_connections 1.0\n" in page.read()
        with urllib.request.urlopen(f"{found.group(1)}/healthz", timeout=WITHIN_S) as page:
            assert page.read() == b"ok\n"


def test_a_port_for_metrics_that_is_taken_is_a_mistake():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServerSettings(port=0, metrics_port=taken.getsockname()[1])
        with pytest.raises(BetimesError, match=r"cannot listen there .*\nhint: .* --metrics-port"):
            run_broker(settings, AccessControl(anonymous=True))


@pytest.mark.live
def test_only_who_has_a_password_comes_in(tmp_path):
    users = tmp_path / "users"
    users.write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    with started("--passwords", str(users)) as (_, port):
        assert connack(port, username="ann", password=b"secret") == 0
        assert connack(port, username="ann", password=b"wrong") == 0x86
        assert connack(port) == 0x86


@pytest.mark.live
def test_it_serves_over_tls_with_the_files_it_is_given(tmp_path):
    authority, both = trustme.CA(), tmp_path / "both.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(both)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with started("--anonymous", "--tls-certificate", str(both), kind="MQTT over TLS") as (_, port):
        bare = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)
        with context.wrap_socket(bare, server_hostname="127.0.0.1") as client:
            client.sendall(mqtt5.ConnectPacket("c").write())
            packet, _ = mqtt5.read(memoryview(client.recv(1000)))
            assert isinstance(packet, mqtt5.ConnAckPacket)


@pytest.mark.live
def test_files_are_read_again_when_told_to_and_a_mistake_leaves_all_as_it_was(tmp_path):
    users, access = tmp_path / "users", tmp_path / "list"
    ann = PasswordFile().with_user("ann", b"secret", Cost(ln=4))
    users.write_text(ann.text())
    access.write_text("topic read open\n")
    with started("--verbose", "--passwords", str(users), "--access", str(access)) as (running, port):

        def reload_and_wait_for(word: str) -> None:
            running.send_signal(signal.SIGHUP)
            assert running.stderr is not None
            while word not in (line := running.stderr.readline()):
                assert line, "it has ended"

        assert connack(port, username="bob", password=b"new") == 0x86
        users.write_text(ann.with_user("bob", b"new", Cost(ln=4)).text())
        reload_and_wait_for("the files were reloaded")
        assert connack(port, username="bob", password=b"new") == 0
        access.write_text("nonsense\n")
        users.write_text(ann.text())
        reload_and_wait_for("the old ones stay in force")
        assert connack(port, username="bob", password=b"new") == 0
        access.write_text("")
        reload_and_wait_for("the files were reloaded")
        assert connack(port, username="bob", password=b"new") == 0x86
        assert connack(port, username="ann", password=b"secret") == 0


def test_a_broker_is_not_its_own_neighbour(tmp_path, capsys):
    config = tmp_path / "broker.toml"
    network = '[network]\nsecret = "a secret that is long enough"\n[[network.links]]\nto = "a"\n'
    config.write_text(f'name = "a"\nanonymous = true\n{network}')
    assert run(["broker", str(config)]) == MISTAKE
    assert "not its own neighbour" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(("hard", "told"), [(20_000, False), (500, True)])
def test_as_many_files_may_be_open_as_connections_are_allowed(hard, told):
    """In a process of its own: limits that were lowered cannot be raised again."""
    code = f"""
import logging, resource
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
from betimes.cli.broker import _allow_connections
_allow_connections(10_000)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(min(10_100, hard))
    assert ("ulimit -n" in done.stderr) == told


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_taken_port_is_told_before_anything_is_compiled(option, capsys, monkeypatch):
    monkeypatch.setattr("betimes.cli.broker.prepare", pytest.fail)
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = str(there.getsockname()[1])
        ports = {"--port": "0", option: port}
        words = [word for pair in ports.items() for word in pair]
        assert run(["broker", "--anonymous", *words]) == MISTAKE
    assert f"127.0.0.1:{port}: cannot listen there" in capsys.readouterr().err
