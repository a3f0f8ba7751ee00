"""Do brokers on real sockets find each other, and again after one was away?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import mqtt5
import pytest
import trustme
from tests.broker.listening import calling, run, until
from tests.broker.talking import OPEN_ACCESS

from betimes.broker.links.federation import Federation
from betimes.broker.net.dialer import tls_to
from betimes.broker.net.listener import Endpoint
from betimes.broker.net.tls import tls_context
from betimes.broker.server import Server
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import ServerSettings
from betimes.terminal.fleet import free_ports

pytestmark = pytest.mark.live


@asynccontextmanager
async def broker(name, *links, port=0, tls=None, secret="hush hush"):
    settings = ServerSettings(name=name, network=NetworkSettings(secret=secret, links=links))
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


def test_without_tls_nothing_is_checked():
    assert tls_to(None, is_encrypted=False) is None


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
                await until(lambda: "link to b: cannot be dialled" in caplog.text)
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
        assert "link to b: cannot be dialled" in warnings[0]

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
