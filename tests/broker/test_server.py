"""Does a server serve as long as it is entered, in this process, and say what it cannot have?"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import httpx
import mqtt5
import pytest
import trustme
from tests.broker.listening import calling, run, until
from tests.broker.peer_networks import plan

import betimes
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.durability.restore import RestoringError
from betimes.broker.links.federation import Federation
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.broker.server import AddressError, Server, endpoints
from betimes.broker.storage.sqlite_file import StoreError
from betimes.client.errors import LoginRefusedError, PublicationRefusedError
from betimes.model.errors import BetimesError
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import Door, Limits, ServerSettings, TelemetrySettings
from betimes.telemetry.files import read_table

OPEN = ServerSettings(port=0, anonymous=True)


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(port=0, anonymous=True, **changes)


def test_a_place_to_listen_without_a_host_has_that_of_the_server():
    settings = ServerSettings(host="::1", more_doors=(Door(port=5), Door(host="0.0.0.0", port=6)))
    assert [(each.host, each.port) for each in endpoints(settings)] == [("::1", 5), ("0.0.0.0", 6)]


@pytest.mark.mqtt("MQTT-4.2-1")
@pytest.mark.live
def test_a_program_publishes_and_receives_at_a_broker_of_its_own():
    async def test():
        async with (
            Server(OPEN) as server,
            betimes.connect(f"mqtt://127.0.0.1:{server.ports[0]}") as client,
            client.subscribe("t") as subscription,
        ):
            await client.publish("t", "hello")
            message = await anext(aiter(subscription))
            assert message.payload == b"hello"
            assert server.hub.counters.received == 1
            assert (server.failure, server.metrics_port, server.ended.is_set()) == (None, None, False)

    run(test())


@pytest.mark.live
def test_a_server_that_was_left_can_be_followed_by_another_at_its_port():
    async def test():
        port = 0
        for _ in range(3):
            async with Server(ServerSettings(port=port, anonymous=True)) as server:
                (port,) = server.ports
                async with betimes.connect(f"mqtt://127.0.0.1:{port}") as client:
                    await client.publish("t", "x", qos=1)

    run(test())


@pytest.mark.live
@pytest.mark.parametrize("is_metrics", [False, True])
def test_an_address_that_is_taken_is_said_and_nothing_is_left_open(is_metrics, tmp_path):
    async def test():
        async with Server(OPEN) as server:
            (taken,) = server.ports
            wrong: dict[str, Any] = {"metrics_port": taken} if is_metrics else {"port": taken}
            store = str(tmp_path / "s.db")
            with pytest.raises(AddressError, match="in use") as error:
                async with Server(ServerSettings(**{"port": 0, "anonymous": True, "store": store, **wrong})):
                    pytest.fail("entered")
            assert (error.value.port, error.value.is_metrics) == (taken, is_metrics)
            async with Server(settings(store=store)):
                pass  # the file is free again

    run(test())


@pytest.mark.live
def test_nobody_comes_in_where_nobody_may():
    async def test():
        async with Server(ServerSettings(port=0)) as server:
            with pytest.raises(LoginRefusedError):
                async with betimes.connect(f"mqtt://127.0.0.1:{server.ports[0]}"):
                    pytest.fail("connected")

    run(test())


@pytest.mark.live
def test_a_new_gate_cuts_off_who_is_not_known_any_more():
    cost = Cost(ln=4)
    ann = PasswordFile().with_user("ann", b"secret", cost)
    both = ann.with_user("bob", b"secret", cost)

    async def test():
        async with Server(OPEN, AccessControl(passwords=both)) as server:
            login: dict[str, Any] = {"username": "bob", "password": b"secret"}
            async with calling(server.listener, "b", **login) as bob:
                assert await server.reload(AccessControl(passwords=ann)) == 1
                assert (await bob.read()).reason_code.value == 0x87

    run(test())


@pytest.mark.live
def test_what_a_store_kept_is_there_in_the_next_server(tmp_path):
    kept = settings(store=str(tmp_path / "s.db"), limits=Limits(sessions_max=2))

    async def test():
        for names in (["a", "b"], []):
            async with Server(kept) as server:
                for name in names:
                    async with calling(server.listener, name, session_expiry_interval=100):
                        pass
                await until(lambda server=server: not server.listener.lines)
                assert set(server.hub.sessions) == {"a", "b"}
        with pytest.raises(RestoringError, match="sessions"):
            async with Server(settings(store=kept.store, limits=Limits(sessions_max=1))):
                pytest.fail("entered")

    run(test())


@pytest.mark.live
def test_a_store_that_cannot_be_written_ends_the_server(tmp_path, monkeypatch):
    async def test():
        with pytest.raises(StoreError, match="the disk is full"):
            await serve_until_it_ends()

    async def serve_until_it_ends():
        async with Server(settings(store=str(tmp_path / "s.db"))) as server:

            def fail(_changes: object) -> None:
                raise StoreError("s.db", "the disk is full", "make room")

            store = server.listener._store
            assert store is not None
            monkeypatch.setattr(store, "_write", fail)
            with pytest.raises(AssertionError):
                async with calling(server.listener, "c", session_expiry_interval=100):
                    pytest.fail("let in")
            await asyncio.wait_for(server.ended.wait(), 10.0)
            assert "the disk is full" in str(server.failure)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", server.ports[0])

    run(test())


@pytest.mark.live
def test_telemetry_is_written_only_where_it_is_asked_for(tmp_path):
    async def test():
        async with Server(OPEN) as server:
            assert server.hub.recorder is None
        telemetry = TelemetrySettings(directory=str(tmp_path), share=1.0)
        async with Server(settings(telemetry=telemetry)) as server:
            assert isinstance(server.hub.recorder, EventRecorder)
            async with betimes.connect(f"mqtt://127.0.0.1:{server.ports[0]}") as client:
                await client.publish("t", "x", qos=1)
        assert read_table(tmp_path, "published").num_rows == 1

    run(test())


@pytest.mark.live
def test_metrics_are_served_where_they_are_asked_for():
    async def test():
        async with Server(settings(metrics_port=0)) as server:
            assert server.metrics_port is not None
            reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b"betimes_uptime_seconds" in await reader.read()
            writer.close()

    run(test())


@pytest.mark.live
def test_a_server_with_a_network_or_a_plan_is_part_of_it():
    async def test():
        async with Server(settings(network=NetworkSettings(secret="hush"))) as server:
            assert isinstance(server.hub.network, Federation)
        async with Server(OPEN, plan=plan("x", address="")) as server:
            assert server.overlay is server.hub.network
            assert server.overlay.address == f"127.0.0.1:{server.ports[0]}"

    run(test())


async def page(server: Server, path: str) -> tuple[int, str]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{server.metrics_port}{path}")
        return answer.status_code, answer.text


def failing_tick(_now_s: float) -> None:
    raise KeyError("gone")


@pytest.mark.live
def test_a_bug_in_the_clock_ends_the_server_and_is_its_failure(monkeypatch, caplog):
    async def test():
        with pytest.raises(KeyError, match="gone"):
            await serve_until_it_ends()

    async def serve_until_it_ends():
        async with Server(OPEN) as server:
            monkeypatch.setattr(server.hub, "tick", failing_tick)
            await server.ended.wait()
            assert isinstance(server.failure, KeyError)

    run(test())
    assert "the clock of the broker failed" in caplog.text


@pytest.mark.live
def test_a_broker_whose_clock_stands_still_is_not_healthy(monkeypatch):
    async def test():
        async with Server(settings(metrics_port=0)) as server:
            assert await page(server, "/healthz") == (200, "ok\n")
            monkeypatch.setattr("betimes.broker.net.listener.STALE_TICK_S", -1.0)
            status, text = await page(server, "/healthz")
            assert (status, text.startswith("the clock ticked")) == (503, True)

    run(test())


@pytest.mark.live
def test_a_broker_is_ready_when_all_its_links_are_up():
    async def test():
        network = NetworkSettings(links=(LinkTerms(to="far"),), secret="s3")
        async with Server(settings(name="near", metrics_port=0, network=network)) as near:
            assert await page(near, "/healthz") == (200, "ok\n")
            assert await page(near, "/readyz") == (503, "no link to far\n")
            back = LinkTerms(to="near", host="127.0.0.1", port=near.ports[0])
            there = NetworkSettings(links=(back,), secret="s3")
            async with Server(settings(name="far", metrics_port=0, network=there)) as far:
                while await page(near, "/readyz") != (200, "ok\n"):
                    await asyncio.sleep(0.05)
                assert await page(far, "/readyz") == (200, "ok\n")

    run(test())


async def shakes_hands(port: int, trusted: trustme.CA, shown: trustme.CA) -> bool:
    """Tell whether a client is let in that trusts one authority and has a certificate of another."""
    context = ssl.create_default_context()
    trusted.configure_trust(context)
    shown.issue_cert("client.example").configure_cert(context)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(mqtt5.ConnectPacket("c", clean_start=True).write())
        came = await reader.read(1)
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return False
    return bool(came)


@pytest.mark.live
def test_reloading_takes_new_certificates_and_forgets_an_authority(tmp_path):
    old, new = trustme.CA(), trustme.CA()
    shown, trusted = tmp_path / "server.pem", tmp_path / "clients.pem"

    def write(authority: trustme.CA) -> None:
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(shown)
        authority.cert_pem.write_to_path(trusted)

    async def test():
        write(old)
        door = Door(port=0, certificate=str(shown), client_ca=str(trusted))
        open_to_all = AccessControl(anonymous=True)
        async with Server(ServerSettings(port=0, anonymous=True, more_doors=(door,))) as server:
            ports = server.ports
            assert await shakes_hands(ports[1], old, old)
            shown.write_text("no certificate")
            with pytest.raises(BetimesError, match="there is no certificate"):
                await server.reload(open_to_all)
            assert await shakes_hands(ports[1], old, old)
            write(new)
            await server.reload(open_to_all)
            assert server.ports == ports
            assert await shakes_hands(ports[1], new, new)
            assert not await shakes_hands(ports[1], old, new)
            assert not await shakes_hands(ports[1], new, old)
            async with betimes.connect(f"mqtt://127.0.0.1:{ports[0]}") as client:
                await client.publish("t", "x", qos=1)

    run(test())


@pytest.mark.live
def test_a_server_is_entered_once():
    async def test():
        server = Server(OPEN)
        async with server:
            with pytest.raises(BetimesError, match="was entered before"):
                await server.__aenter__()
            async with betimes.connect(f"mqtt://127.0.0.1:{server.ports[0]}") as client:
                await client.publish("t", "x", qos=1)

    run(test())


@pytest.mark.live
def test_a_server_reads_the_files_that_its_settings_name(tmp_path):
    users, access = tmp_path / "users", tmp_path / "access"
    users.write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    access.write_text("user ann\ntopic read open\n")

    async def test():
        named = ServerSettings(port=0, passwords=str(users), access=str(access))
        async with Server(named) as server:
            address = f"mqtt://127.0.0.1:{server.ports[0]}"
            async with betimes.connect(address, user="ann", password="secret") as ann:
                with pytest.raises(PublicationRefusedError):
                    await ann.publish("closed", "x", qos=1)
            with pytest.raises(LoginRefusedError):
                async with betimes.connect(address):
                    pytest.fail("let in")

    run(test())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"passwords": "/nowhere/users"}, "no such file"),
        ({"access": "/nowhere/list"}, "no such file"),
        ({"control_secret_file": "/nowhere/secret"}, "no such file"),
        ({"network": NetworkSettings(secret_file="/nowhere/secret")}, "no such file"),
        ({"network": NetworkSettings()}, "there is none"),
    ],
)
def test_a_file_that_is_not_there_is_an_error_before_anybody_can_come(changes, said):
    with pytest.raises(BetimesError, match=said):
        Server(settings(**changes))
