"""Do brokers on real sockets find each other, and again after one was away?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import mqtt5
import pytest
import trustme
from tests.broker.listening import calling, ending, run, until
from tests.broker.talking import OPEN_ACCESS

from betimes.broker.links.federation import Federation
from betimes.broker.links.packets import VERSION
from betimes.broker.net import dialer
from betimes.broker.net.listener import Endpoint
from betimes.broker.net.tls import link_tls_context, tls_context
from betimes.broker.server import Server
from betimes.model.errors import BetimesError
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import Limits, ServerSettings
from betimes.terminal.fleet import free_ports

pytestmark = pytest.mark.live


@asynccontextmanager
async def broker(name, *links, port=0, tls=None, secret="hush hush", limits=None, named_certificates=False):
    network = NetworkSettings(secret=secret, links=links, named_certificates=named_certificates)
    settings = ServerSettings(name=name, network=network, limits=limits or Limits())
    async with Server(settings, OPEN_ACCESS, places=[Endpoint(port=port, tls=tls)]) as server:
        yield server.listener


def federation_of(listener):
    federation = listener.hub.network
    assert isinstance(federation, Federation)
    return federation


def up(listener):
    return set(federation_of(listener).ends)


def test_a_message_crosses_from_broker_to_broker():
    async def test():
        async with broker("b") as b, broker("a", LinkTerms(to="b", host="127.0.0.1", port=b.ports[0])) as a:
            await until(lambda: up(a) == {"b"} and up(b) == {"a"})
            async with calling(b, "alice") as alice, calling(a, "bob") as bob:
                await alice.ask(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("news")]))
                await until(lambda: federation_of(a).bulletins.demand_of("b"))
                bob.write(mqtt5.PublishPacket("news", b"hello"))
                assert (await alice.read()).payload == b"hello"

    run(test())


def test_a_neighbour_that_was_away_is_dialled_again():
    async def test():
        (port,) = free_ports(1)
        async with broker("a", LinkTerms(to="b", host="127.0.0.1", port=port)) as a:
            await asyncio.sleep(0.2)
            for _ in range(2):
                async with broker("b", port=port) as b:
                    await until(lambda b=b: up(a) == {"b"} and up(b) == {"a"})
                await until(lambda: up(a) == set())

    run(test())


def test_a_link_may_be_encrypted(tmp_path):
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "b.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    async def test():
        tls = tls_context(str(tmp_path / "b.pem"), None, None)
        async with broker("b", tls=tls) as b:
            terms = LinkTerms(
                to="b", host="localhost", port=b.ports[0], tls=True, authorities=str(tmp_path / "ca.pem")
            )
            async with broker("a", terms) as a:
                await until(lambda: up(a) == {"b"} and up(b) == {"a"})
            distrustful = LinkTerms(to="b", host="localhost", port=b.ports[0], tls=True)
            async with broker("c", distrustful) as c:
                await asyncio.sleep(0.5)
                assert up(c) == set()

    run(test())


class Certificates:
    """Certificates of brokers, by an authority of the test."""

    def __init__(self, folder):
        self.folder, self._authority = folder, trustme.CA()
        self._authority.cert_pem.write_to_path(folder / "ca.pem")
        self.authority = str(folder / "ca.pem")

    def of(self, *names):
        """Return the file of a certificate with these names, and its key."""
        path = self.folder / f"{'-'.join(names)}.pem"
        self._authority.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    def context(self, *names):
        return tls_context(self.of(*names), None, self.authority)

    def terms(self, listener, certificate, **changes):
        terms = {"to": "b", "host": "127.0.0.1", "port": listener.ports[0], "tls": True}
        return LinkTerms(**(terms | {"authorities": self.authority, "certificate": certificate} | changes))


def test_brokers_show_each_other_certificates_with_their_names(tmp_path, caplog):
    made = Certificates(tmp_path)

    async def test():
        async with (
            broker("b", tls=made.context("b"), named_certificates=True) as b,
            broker("a", made.terms(b, made.of("a")), named_certificates=True) as a,
        ):
            await until(lambda: up(a) == {"b"} and up(b) == {"a"})
            # knows the secret and has a good certificate, but of another name
            async with broker("c", made.terms(b, made.of("other")), named_certificates=True) as c:
                await until(lambda: "the certificate that it shows does not name c" in caplog.text)
                assert up(c) == set()
            caplog.clear()
            caplog.set_level("INFO")
            async with broker("d", made.terms(b, None)) as d:  # shows none
                await until(lambda: "gone: 127.0.0.1" in caplog.text or "cannot be dialled" in caplog.text)
                assert up(d) == set()
            assert up(b) == {"a"}

    run(test())


def test_a_listener_with_the_certificate_of_another_broker_is_left(tmp_path, caplog):
    made = Certificates(tmp_path)

    async def test():
        async with (
            broker("b", tls=made.context("other", "127.0.0.1")) as b,
            broker("a", made.terms(b, made.of("a")), named_certificates=True) as a,
        ):
            await until(lambda: "the certificate that it shows does not name b" in caplog.text)
            assert (up(a), up(b)) == (set(), set())

    run(test())


def test_a_neighbour_that_ends_every_connection_is_warned_about_once(caplog, monkeypatch):
    monkeypatch.setattr(dialer, "WARN_AFTER_S", 0.3)

    async def test():
        ended = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        port = ended.sockets[0].getsockname()[1]
        async with ended, broker("a", LinkTerms(to="b", host="127.0.0.1", port=port)):
            await until(lambda: "ended before the link was up" in caplog.text)
            await asyncio.sleep(1.0)

    run(test())
    warned = [each for each in caplog.records if "ended before the link was up" in each.getMessage()]
    assert [each.levelname for each in warned].count("WARNING") == 1
    assert "link to b at 127.0.0.1:" in warned[0].getMessage()


def test_a_network_of_named_certificates_has_no_link_without_tls(caplog):
    async def test():
        async with (
            broker("b", named_certificates=True) as b,
            broker("a", LinkTerms(to="b", host="127.0.0.1", port=b.ports[0])) as a,
        ):
            await until(lambda: "it shows no certificate, which has to name a" in caplog.text)
            assert (up(a), up(b)) == (set(), set())

    run(test())


def test_a_certificate_of_a_link_that_cannot_be_used_is_told_before_the_broker_starts(tmp_path):
    links = (LinkTerms(to="b", host="b", tls=True, certificate=str(tmp_path / "none.pem")),)
    settings = ServerSettings(name="a", network=NetworkSettings(secret="hush hush", links=links))
    with pytest.raises(BetimesError, match=r"none\.pem: there is no such file"):
        Server(settings, OPEN_ACCESS)


# --- attacks


@asynccontextmanager
async def fake_broker(answer):
    """Listen in place of a broker: answer what is dialled, and keep all that was sent."""
    heard = bytearray()

    async def serve(reader, writer):
        while data := await reader.read(65_536):
            heard.extend(data)
            for packet in answer(data):
                writer.write(packet.write())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        server.close()


def test_a_fake_broker_is_sent_no_secret_and_injects_no_event(caplog):
    caplog.set_level("INFO")
    identity = [("$betimes-link", VERSION), ("$betimes-broker", "b"), ("$betimes-life", "7")]

    def answer(data):
        if data[0] != 0x10:
            return
        yield mqtt5.ConnAckPacket(user_properties=identity)
        via = [("$via", "b:1 0.0 1.0 - 1 - a")]
        yield mqtt5.PublishPacket("news", b"forged", qos=mqtt5.QoS(1), packet_id=1, user_properties=via)

    async def test():
        async with fake_broker(answer) as (port, heard):
            async with (
                broker("a", LinkTerms(to="b", host="127.0.0.1", port=port)) as a,
                calling(a, "alice") as alice,
            ):
                await alice.ask(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("news")]))
                await until(lambda: caplog.text.count("link to b:") >= 2 or up(a))
                assert up(a) == set()
                alice.write(mqtt5.PingReqPacket())
                assert isinstance(await alice.read(), mqtt5.PingRespPacket), "and no event"
            assert heard
            assert b"hush hush" not in heard

    run(test())


def test_a_neighbour_that_proves_nothing_is_cut_off_in_time():
    async def test():
        async with broker("b", limits=Limits(connect_within_s=0.2)) as b, calling(b) as caller:
            identity = [("$betimes-link", VERSION), ("$betimes-broker", "x"), ("$betimes-life", "7")]
            connect = mqtt5.ConnectPacket(
                "x",
                authentication_method="betimes-link",
                authentication_data=b"n" * 32,
                user_properties=identity,
            )
            assert isinstance(await caller.ask(connect), mqtt5.AuthPacket)
            assert await ending(caller) == b""
            await until(lambda: not b.lines)

    run(test())


def test_a_handshake_is_not_relayed_from_one_tls_connection_to_another(tmp_path, caplog):
    made = Certificates(tmp_path)

    async def test():
        async with broker("b", tls=made.context("b", "127.0.0.1")) as b:
            towards_b = link_tls_context(made.authority, made.of("m"), checks_host=False)

            async def relay(reader, writer):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", b.ports[0], ssl=towards_b)
                await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

            # even with a certificate of the right name
            server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=made.context("b", "127.0.0.1"))
            port = server.sockets[0].getsockname()[1]
            async with broker("a", made.terms(b, made.of("a"), port=port)) as a:
                await until(lambda: "or is not where TLS ends" in caplog.text)
                assert (up(a), up(b)) == (set(), set())
            server.close()

    run(test())


async def pump(reader, writer):
    """Carry bytes one way until the end."""
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


@pytest.mark.parametrize("wrong", ["another one"])
def test_another_secret_keeps_brokers_apart(wrong):
    async def test():
        async with broker("b") as b:
            terms = LinkTerms(to="b", host="127.0.0.1", port=b.ports[0])
            async with broker("a", terms, secret=wrong) as a:
                await asyncio.sleep(0.5)
                assert (up(a), up(b)) == (set(), set())

    run(test())


def test_a_neighbour_that_is_not_up_yet_is_nothing_to_warn_of(caplog):
    async def test():
        (port,) = free_ports(1)
        with caplog.at_level("INFO"):
            async with broker("a", LinkTerms(to="b", host="127.0.0.1", port=port)) as a:
                await until(lambda: f"link to b at 127.0.0.1:{port}: cannot be dialled" in caplog.text)
                async with broker("b", port=port):
                    await until(lambda: up(a) == {"b"})
                    assert [each for each in caplog.records if each.levelname == "WARNING"] == []
                await until(lambda: not up(a))
                assert "link to b is down" in [each.getMessage() for each in caplog.records]

    run(test())


def test_an_address_where_nobody_listens_is_told_of_once(caplog, monkeypatch):
    monkeypatch.setattr("betimes.broker.net.dialer.WARN_AFTER_S", 0.2)

    async def test():
        (port,) = free_ports(1)
        async with broker("a", LinkTerms(to="b", host="127.0.0.1", port=port)):
            await asyncio.sleep(1.0)  # several times dialled
        warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert len(warnings) == 1
        assert f"link to b at 127.0.0.1:{port}: cannot be dialled" in warnings[0]

    run(test())


def test_two_brokers_that_dial_each_other_have_one_link():
    async def test():
        ports = free_ports(2)
        one = LinkTerms(to="a", host="127.0.0.1", port=ports[0])
        other = LinkTerms(to="b", host="127.0.0.1", port=ports[1])
        async with broker("a", other, port=ports[0]) as a, broker("b", one, port=ports[1]) as b:
            await until(lambda: up(a) == {"b"} and up(b) == {"a"})
            ends = (federation_of(a).ends["b"], federation_of(b).ends["a"])
            await asyncio.sleep(1.0)
            assert (federation_of(a).ends["b"], federation_of(b).ends["a"]) == ends

    run(test())
