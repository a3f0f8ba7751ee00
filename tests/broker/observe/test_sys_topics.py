"""Does the server tell of itself, to whom may know it, without counting that?"""

from __future__ import annotations

from tests.broker.talking import Client, new_hub

from betimes import __version__
from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.observe.statistics import ObservedParts, gathered
from betimes.broker.observe.sys_topics import ROOT, SysTopics, texts


def told(client: Client) -> dict[str, str]:
    """Return what a client was told, by the topic below the root."""
    got = client.got()
    assert all(topic.startswith(ROOT) for topic, _ in got)
    return {topic.removeprefix(ROOT): payload.decode() for topic, payload in got}


def test_everything_is_said_at_once_and_then_what_has_changed():
    hub = new_hub()
    client = Client(hub)
    client.subscribe("$SYS/#")
    system = SysTopics(ObservedParts(hub=hub), every_s=10.0)
    system.tick(0.0)
    first = told(client)
    assert first["version"] == f"betimes version {__version__}"
    assert first["uptime"] == "0 seconds"
    assert (first["clients/connected"], first["clients/total"], first["clients/disconnected"]) == (
        "1",
        "1",
        "0",
    )
    assert first["subscriptions/count"] == "1"
    system.tick(9.9)
    assert told(client) == {}
    system.tick(10.0)
    second = told(client)
    assert set(second) == {"uptime", "messages/sent", "bytes/sent"}  # those that were just read
    assert second["uptime"] == "10 seconds"


def test_the_names_are_those_of_mosquitto():
    assert set(texts(gathered(ObservedParts(hub=new_hub()), 0.0))) == {
        "version",
        "uptime",
        "clients/connected",
        "clients/disconnected",
        "clients/total",
        "messages/received",
        "messages/sent",
        "bytes/received",
        "bytes/sent",
        "publish/messages/received",
        "publish/messages/sent",
        "publish/messages/dropped",
        "subscriptions/count",
        "retained messages/count",
    }


def test_they_are_retained_and_reached_by_no_wildcard_in_front():
    hub = new_hub(retained_max=0)  # what clients may keep is another matter
    everything = Client(hub, "everything")
    everything.subscribe("#", "+/broker/uptime")
    SysTopics(ObservedParts(hub=hub), every_s=10.0).tick(3.0)
    late = Client(hub, "late", now_s=4.0)
    late.subscribe("$SYS/broker/uptime", "$SYS/broker/clients/+")
    assert set(told(late)) == {"uptime", "clients/connected", "clients/disconnected", "clients/total"}
    everything.subscribe("#", "+/broker/uptime")
    assert told(everything) == {}


def test_they_are_not_counted_as_publications_whoever_gets_or_misses_them():
    hub = new_hub()
    plain, careful = Client(hub, "plain"), Client(hub, "careful", session_expiry_interval=100)
    plain.subscribe("$SYS/#")
    careful.subscribe("$SYS/#", qos=1, subscription_id=3)
    system = SysTopics(ObservedParts(hub=hub), every_s=10.0)
    system.tick(0.0)
    assert len(told(plain)) == len(told(careful)) > 0
    careful.connection.lost(0.0)
    system.tick(10.0)
    found = gathered(ObservedParts(hub=hub), 10.0)
    assert (found.counters.received, found.counters.sent, sum(found.lost.values()), found.retained) == (
        0,
        0,
        0,
        0,
    )


def test_an_access_list_says_who_may_read_them():
    access = AccessList.read("topic read #\nuser ann\ntopic read $SYS/broker/clients/#\n", "list")
    hub = new_hub(access_control=AccessControl(anonymous=True, access=access))
    SysTopics(ObservedParts(hub=hub), every_s=10.0).tick(0.0)
    client = Client(hub)
    assert client.subscribe("$SYS/broker/uptime").reason_codes[0].value == 0x87
    ann = Client(hub, "ann")
    ann.connection.session.rights = hub.access_control.rights("ann", "ann")  # type: ignore[union-attr]
    assert ann.subscribe("$SYS/#").reason_codes[0].value == 0
    assert set(told(ann)) == {"clients/connected", "clients/disconnected", "clients/total"}


def test_clients_cannot_publish_there():
    hub = new_hub()
    (answer,) = Client(hub).publish("$SYS/broker/uptime", b"lie", qos=1)
    assert answer.reason_code.value == 0x87


def test_nothing_is_said_where_that_is_not_wanted():
    hub = new_hub()
    SysTopics(ObservedParts(hub=hub), every_s=0.0).tick(1e9)
    client = Client(hub)
    client.subscribe("$SYS/#")
    assert told(client) == {}
