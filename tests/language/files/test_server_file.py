"""Does a configuration file become settings, or one message with all that is wrong?"""

from __future__ import annotations

import tomllib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.files.server_file import read_server_file
from betimes.model.errors import FileMistakesError
from betimes.model.server_settings import Door, Kind, Limits, ServerSettings, TelemetrySettings

WHOLE = """
name = "harbour"
host = "0.0.0.0"
port = 0
certificate = "c"
key = "k"
client_ca = "ca"
anonymous = true
passwords = "users"
access = "list"
store = "betimes.db"
store_sync = "full"
metrics_port = 9
sys_every = "0s"
discreet = true

[limits]
connections = 1
connection_rate = 20
publish_rate = 0.5
packet_size = "1MB"
receive = 2
topic_aliases = 0
subscriptions = 3
sessions = 4
retained = 5
retained_size = "2MB"
keys = 6
queue_size = "512B"
queues_size = "2KB"
memory = "8KB"
user_memory = "4KB"
connect_within = "1s"
keep_alive = "1m"
session_expiry = "7d"
client_id_letters = 23

[[listen]]
port = 7
certificate = "c2"
key = "k2"
client_ca = "ca2"

[[listen]]
host = "::1"
kind = "websocket"
"""


def mistakes_in(text: str) -> dict[str, str]:
    with pytest.raises(FileMistakesError) as caught:
        read_server_file(text, "x.toml")
    return {mistake.place: f"{mistake.problem} {mistake.hint}" for mistake in caught.value.mistakes}


def test_nothing_needs_to_be_said():
    assert read_server_file("", "x.toml") == ServerSettings()
    assert read_server_file("[limits]", "x.toml") == ServerSettings()


def test_everything_can_be_said():
    limits = Limits(
        connections_max=1,
        connections_per_s_max=20.0,
        publications_per_s_max=0.5,
        packet_bytes_max=1_000_000,
        receive_max=2,
        topic_aliases_max=0,
        subscriptions_max=3,
        sessions_max=4,
        retained_max=5,
        retained_bytes_max=2_000_000,
        keys_max=6,
        queue_bytes_max=512,
        queues_bytes_max=2000,
        memory_bytes_max=8000,
        user_memory_bytes_max=4000,
        connect_within_s=1.0,
        keep_alive_s_max=60,
        session_expiry_s_max=604_800.0,
        client_id_letters_max=23,
    )
    assert read_server_file(WHOLE, "x.toml") == ServerSettings(
        name="harbour",
        host="0.0.0.0",
        port=0,
        certificate="c",
        key="k",
        client_ca="ca",
        more_doors=(
            Door(port=7, certificate="c2", key="k2", client_ca="ca2"),
            Door(host="::1", port=8083, kind=Kind.WEBSOCKET),
        ),
        anonymous=True,
        passwords="users",
        access="list",
        metrics_port=9,
        sys_every_s=0.0,
        discreet=True,
        store="betimes.db",
        store_sync="full",
        limits=limits,
    )
    assert len(tomllib.loads(WHOLE)["limits"]) == len(Limits.__slots__)


def test_all_mistakes_are_listed_at_once():
    text = (
        'port = 70000\nanonymus = true\nhost = ""\npasswords = 7\n[limits]\nreceive = 0\nkeep_alive = "2d"\n'
    )
    found = mistakes_in(text)
    assert set(found) == {"port", "anonymus", "host", "passwords", "limits.receive", "limits.keep_alive"}
    assert "anonymous" in found["anonymus"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("packet_size = 4", "with its unit"),
        ('packet_size = "100B"', "between"),
        ("connection_rate = 0", "between 0.01"),
        ("publish_rate = -1", "between 0.01"),
        ('packet_size = "300MB"', "between"),
        ('keep_alive = "0.5s"', "between"),
        ('session_expiry = "1000000d"', "longer than MQTT can say"),
        ('queue_size = "0B"', "more than zero"),
        ('connect_within = "never"', "number"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(line, said):
    (problem,) = mistakes_in(f"[limits]\n{line}\n").values()
    assert said in problem


def test_a_name_of_a_file_is_a_text():
    assert set(mistakes_in('passwords = " "\naccess = "a\\u0000b"')) == {"passwords", "access"}
    assert set(mistakes_in('store = ""\nstore_sync = "often"')) == {"store", "store_sync"}


def test_ports_are_the_usual_ones_unless_named():
    lines = (
        "",
        'certificate = "c"',
        'kind = "websocket"',
        'kind = "websocket"\ncertificate = "c"',
        "port = 5",
    )
    text = "".join(f"[[listen]]\n{line}\n" for line in lines)
    assert [door.port for door in read_server_file(text, "x.toml").doors] == [1883, 8883, 8083, 8084, 5]


def test_the_top_is_one_more_place_to_listen_if_it_names_a_port_or_a_certificate():
    places = "[[listen]]\nport = 5\n"
    for text, ports in (
        ("", [1883]),
        ('certificate = "c"\n', [8883]),
        (places, [5]),
        (f'host = "::1"\n{places}', [5]),
        (f"port = 4\n{places}", [4, 5]),
        (f'certificate = "c"\n{places}', [8883, 5]),
    ):
        assert [door.port for door in read_server_file(text, "x.toml").doors] == ports


def test_mistakes_in_a_place_to_listen_say_in_which():
    text = 'key = "k"\n[[listen]]\n[[listen]]\nport = -1\nclient_ca = "ca"\ncertificat = "c"\n'
    found = mistakes_in(text)
    assert set(found) == {"key", "listen[1].port", "listen[1].client_ca", "listen[1].certificat"}
    assert "without a certificate" in found["key"]
    assert set(mistakes_in("listen = 3")) == {"listen"}
    assert "websocket" in mistakes_in('[[listen]]\nkind = "websockets"\n')["listen[0].kind"]
    assert "64 are allowed" in mistakes_in("[[listen]]\n" * 65)["listen"]


@given(st.text(max_size=40))
def test_any_text_is_settings_or_a_list_of_mistakes(text):
    with suppress(FileMistakesError):
        assert isinstance(read_server_file(text, "x.toml"), ServerSettings)


def test_telemetry_is_asked_for_with_its_share():
    text = '[telemetry]\ndirectory = "t"\nshare = 0.5\nevery = "5s"\nsize = "10MB"'
    found = read_server_file(text, "broker.toml").telemetry
    assert found == TelemetrySettings(directory="t", share=0.5, every_s=5.0, bytes_max=10_000_000)
    for wrong in (
        "[telemetry]",
        '[telemetry]\ndirectory = "t"\nshare = 0',
        '[telemetry]\ndirectory = "t"\nx = 1',
    ):
        with pytest.raises(FileMistakesError):
            read_server_file(wrong, "broker.toml")
