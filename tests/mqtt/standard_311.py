"""The normative statements of MQTT 3.1.1 by their numbers: what each asks, and which of MQTT 5 ask the same.

A packet of 3.1.1 is converted to version 5 and handled as such (`mqtt/mqtt311.py`), so a test of the same
statement of version 5 proves both. What 3.1.1 asks in another way has tests of its own:
`@pytest.mark.mqtt311("MQTT-3.1.4-1")`, or a row of `tests/broker/core/packet_table.py`.
"""

from __future__ import annotations

from typing import NamedTuple

CLIENT_IS_5 = "It binds clients, and the client of Betimes speaks version 5."


class Statement311(NamedTuple):
    """What a statement asks, which statements of MQTT 5 ask the same, and why it has no test, if so."""

    asks: str
    same: tuple[str, ...] = ()
    reason: str = ""


def same(asks: str, *numbers: str) -> Statement311:
    return Statement311(asks, tuple(f"MQTT-{each}" for each in numbers))


def own(asks: str) -> Statement311:
    return Statement311(asks)


def outside(asks: str, reason: str) -> Statement311:
    return Statement311(asks, reason=reason)


STATEMENTS_311 = {
    "MQTT-1.5.3-1": same("texts are well-formed UTF-8; others close the connection", "1.5.4-1"),
    "MQTT-1.5.3-2": same("no text has U+0000 in it", "1.5.4-2"),
    "MQTT-1.5.3-3": same("a byte order mark is a character like others", "1.5.4-3"),
    "MQTT-2.2.2-1": same("reserved flags have the listed value", "2.1.3-1"),
    "MQTT-2.2.2-2": own("invalid flags close the connection"),
    "MQTT-2.3.1-1": own("SUBSCRIBE, UNSUBSCRIBE and PUBLISH above QoS 0 have a packet identifier above 0"),
    "MQTT-2.3.1-2": outside("a client assigns free packet identifiers", CLIENT_IS_5),
    "MQTT-2.3.1-3": outside("a client sends again with the same packet identifier", CLIENT_IS_5),
    "MQTT-2.3.1-4": same(
        "a server assigns free packet identifiers, and sends again with the same one", "2.2.1-4", "4.4.0-1"
    ),
    "MQTT-2.3.1-5": same("QoS 0 has no packet identifier", "2.2.1-2"),
    "MQTT-2.3.1-6": same("acknowledgements have the packet identifier of their PUBLISH", "2.2.1-5"),
    "MQTT-2.3.1-7": same("SUBACK and UNSUBACK have the packet identifier of the request", "2.2.1-6"),
    "MQTT-3.1.0-1": same("the first packet is CONNECT", "3.1.0-1"),
    "MQTT-3.1.0-2": same("a second CONNECT ends the connection", "3.1.0-2"),
    "MQTT-3.1.2-1": same("another protocol name is not processed as MQTT", "3.1.2-1"),
    "MQTT-3.1.2-2": own("an unsupported level is answered by CONNACK 0x01 and the end"),
    "MQTT-3.1.2-3": own("a reserved flag of CONNECT that is set ends the connection"),
    "MQTT-3.1.2-4": same(
        "without clean session the session is resumed or begun, and kept", "3.1.2-5", "3.1.2-6"
    ),
    "MQTT-3.1.2-5": same("messages of QoS 1 and 2 are kept for a client that is away", "4.5.0-1"),
    "MQTT-3.1.2-6": same(
        "clean session discards an older session, and ends with the connection", "3.1.2-4", "4.1.0-2"
    ),
    "MQTT-3.1.2-7": own("retained messages outlive sessions"),
    "MQTT-3.1.2-8": same(
        "the will is kept, and published unless DISCONNECT deletes it", "3.1.2-7", "3.1.2-8"
    ),
    "MQTT-3.1.2-9": same("with the will flag, topic and message of the will are there", "3.1.2-9"),
    "MQTT-3.1.2-10": same("a will is removed once published, and by DISCONNECT", "3.1.2-10"),
    "MQTT-3.1.2-11": own("without the will flag there is no will QoS, will retain, topic or message"),
    "MQTT-3.1.2-12": own("without the will flag no will is published"),
    "MQTT-3.1.2-13": same("no will QoS without a will", "3.1.2-11"),
    "MQTT-3.1.2-14": same("the will QoS is not 3", "3.1.2-12"),
    "MQTT-3.1.2-15": same("no will retain flag without a will", "3.1.2-13"),
    "MQTT-3.1.2-16": same("a will without the retain flag is not retained", "3.1.2-14"),
    "MQTT-3.1.2-17": same("a will with the retain flag is retained", "3.1.2-15"),
    "MQTT-3.1.2-18": same("no user name without its flag", "3.1.2-16"),
    "MQTT-3.1.2-19": same("a user name where its flag is set", "3.1.2-17"),
    "MQTT-3.1.2-20": same("no password without its flag", "3.1.2-18"),
    "MQTT-3.1.2-21": same("a password where its flag is set", "3.1.2-19"),
    "MQTT-3.1.2-22": own("no password without a user name"),
    "MQTT-3.1.2-23": outside("a client sends PINGREQ within its keep alive", CLIENT_IS_5),
    "MQTT-3.1.2-24": same(
        "the server ends a connection that is silent for one and a half keep alives", "3.1.2-22"
    ),
    "MQTT-3.1.3-1": same("the fields of CONNECT come in their order", "3.1.3-1"),
    "MQTT-3.1.3-2": same("a session is known by its client id", "3.1.3-2"),
    "MQTT-3.1.3-3": same("the client id is the first field", "3.1.3-3"),
    "MQTT-3.1.3-4": same("the client id is UTF-8", "3.1.3-4"),
    "MQTT-3.1.3-5": same("client ids of 1 to 23 letters and digits are accepted", "3.1.3-5"),
    "MQTT-3.1.3-6": same("a client without a client id gets a unique one", "3.1.3-6"),
    "MQTT-3.1.3-7": own("no client id only with clean session"),
    "MQTT-3.1.3-8": own("no client id without clean session is answered by CONNACK 0x02 and the end"),
    "MQTT-3.1.3-9": own("a rejected client id is answered by CONNACK 0x02 and the end"),
    "MQTT-3.1.3-10": same("the will topic is UTF-8", "3.1.3-11"),
    "MQTT-3.1.3-11": same("the user name is UTF-8", "3.1.3-12"),
    "MQTT-3.1.4-1": own("a CONNECT of the wrong format ends the connection without CONNACK"),
    "MQTT-3.1.4-2": same("a client that connects again ends its older connection", "3.1.4-3"),
    "MQTT-3.1.4-3": same("the server acts on clean session", "3.1.4-4"),
    "MQTT-3.1.4-4": same("an accepted CONNECT is answered by CONNACK with 0", "3.1.4-5"),
    "MQTT-3.1.4-5": same("behind a rejected CONNECT nothing is processed", "3.1.4-6"),
    "MQTT-3.2.0-1": same("CONNACK is the first packet of the server", "3.2.0-1"),
    "MQTT-3.2.2-1": same("session present is 0 with clean session", "3.2.2-2"),
    "MQTT-3.2.2-2": own("session present is 1 where there was a session"),
    "MQTT-3.2.2-3": same("session present is 0 where there was none", "3.2.2-3"),
    "MQTT-3.2.2-4": same("session present is 0 in a CONNACK that rejects", "3.2.2-6"),
    "MQTT-3.2.2-5": same("a CONNACK that rejects is followed by the end of the connection", "3.2.2-7"),
    "MQTT-3.2.2-6": own("where no return code fits, the connection ends without CONNACK"),
    "MQTT-3.3.1-1": same("DUP is 1 where a PUBLISH is sent again", "3.3.1-1"),
    "MQTT-3.3.1-2": same("DUP is 0 with QoS 0", "3.3.1-2"),
    "MQTT-3.3.1-3": same("the publisher's DUP is not passed on", "3.3.1-3"),
    "MQTT-3.3.1-4": same("QoS 3 ends the connection", "3.3.1-4"),
    "MQTT-3.3.1-5": same("a retained message is kept with its QoS", "3.3.1-5"),
    "MQTT-3.3.1-6": same("a new subscription gets the last retained messages", "3.3.1-9"),
    "MQTT-3.3.1-7": same("a retained message of QoS 0 discards the older one", "3.3.1-5"),
    "MQTT-3.3.1-8": own("RETAIN is 1 where a message is sent because of a new subscription"),
    "MQTT-3.3.1-9": same("RETAIN is 0 for an established subscription", "3.3.1-12"),
    "MQTT-3.3.1-10": same("an empty retained message removes the older one", "3.3.1-6"),
    "MQTT-3.3.1-11": same("an empty retained message is not kept", "3.3.1-7"),
    "MQTT-3.3.1-12": same("a message without RETAIN leaves retained ones alone", "3.3.1-8"),
    "MQTT-3.3.2-1": same("the topic comes first and is UTF-8", "3.3.2-1"),
    "MQTT-3.3.2-2": same("no wildcard in a topic name", "3.3.2-2"),
    "MQTT-3.3.2-3": same("the topic of a sent message matches the subscription", "3.3.2-3"),
    "MQTT-3.3.4-1": same("a PUBLISH is answered as its QoS says", "3.3.4-1"),
    "MQTT-3.3.5-1": same("overlapping subscriptions: the highest QoS of them counts", "3.3.4-2"),
    "MQTT-3.3.5-2": own("a PUBLISH that is not allowed is acknowledged, or ends the connection"),
    "MQTT-3.6.1-1": same("the flags of PUBREL are 0010", "3.6.1-1"),
    "MQTT-3.8.1-1": same("the flags of SUBSCRIBE are 0010", "3.8.1-1"),
    "MQTT-3.8.3-1": same("topic filters are UTF-8", "3.8.3-1"),
    "MQTT-3.8.3-2": outside(
        "a server without wildcards rejects filters with them", "The broker supports wildcards."
    ),
    "MQTT-3.8.3-3": same("SUBSCRIBE has at least one filter with its QoS", "3.8.3-2"),
    "MQTT-3.8.3-4": own("reserved bits, or a QoS above 2, end the connection"),
    "MQTT-3.8.4-1": same("SUBSCRIBE is answered by SUBACK", "3.8.4-1"),
    "MQTT-3.8.4-2": same("SUBACK has the packet identifier of SUBSCRIBE", "3.8.4-2"),
    "MQTT-3.8.4-3": same("a subscription with the same filter replaces the older one", "3.8.4-3", "3.8.4-4"),
    "MQTT-3.8.4-4": same("several filters are as several SUBSCRIBEs with one answer", "3.8.4-5"),
    "MQTT-3.8.4-5": same("SUBACK has a granted QoS or a failure for each filter", "3.8.4-6", "3.8.4-7"),
    "MQTT-3.8.4-6": same("messages have the lower QoS of publisher and subscription", "3.8.4-8"),
    "MQTT-3.9.3-1": same("the codes of SUBACK are in the order of the filters", "3.9.3-1"),
    "MQTT-3.9.3-2": own("SUBACK has no codes but 0, 1, 2 and 0x80"),
    "MQTT-3.10.1-1": same("the flags of UNSUBSCRIBE are 0010", "3.10.1-1"),
    "MQTT-3.10.3-1": same("the filters of UNSUBSCRIBE are UTF-8", "3.10.3-1"),
    "MQTT-3.10.3-2": same("UNSUBSCRIBE has at least one filter", "3.10.3-2"),
    "MQTT-3.10.4-1": same("filters are compared byte by byte, and the same one is deleted", "3.10.4-1"),
    "MQTT-3.10.4-2": same("after UNSUBSCRIBE no new messages are added", "3.10.4-2"),
    "MQTT-3.10.4-3": same("what was begun to be sent is completed", "3.10.4-3"),
    "MQTT-3.10.4-4": same("UNSUBACK has the packet identifier of UNSUBSCRIBE", "3.10.4-4", "3.10.4-5"),
    "MQTT-3.10.4-5": same("UNSUBACK comes also where nothing was deleted", "3.10.4-5"),
    "MQTT-3.10.4-6": same("several filters are as several UNSUBSCRIBEs with one answer", "3.10.4-6"),
    "MQTT-3.12.4-1": same("PINGREQ is answered by PINGRESP", "3.12.4-1"),
    "MQTT-3.14.1-1": same("reserved flags of DISCONNECT end the connection", "3.14.1-1"),
    "MQTT-3.14.4-1": outside("a client closes the connection behind DISCONNECT", CLIENT_IS_5),
    "MQTT-3.14.4-2": outside("a client sends nothing behind DISCONNECT", CLIENT_IS_5),
    "MQTT-3.14.4-3": same("DISCONNECT discards the will", "3.14.4-3"),
    "MQTT-4.1.0-1": same("both sides keep a session for its whole life", "3.1.2-23"),
    "MQTT-4.1.0-2": same("a session lives as long as its connection", "4.1.0-1"),
    "MQTT-4.3.1-1": same("QoS 0 is sent with DUP 0", "4.3.1-1"),
    "MQTT-4.3.2-1": same("QoS 1: what a sender does", "4.3.2-1", "4.3.2-2", "4.3.2-3"),
    "MQTT-4.3.2-2": same("QoS 1: what a receiver does", "4.3.2-4", "4.3.2-5"),
    "MQTT-4.3.3-1": same(
        "QoS 2: what a sender does", "4.3.3-1", "4.3.3-2", "4.3.3-3", "4.3.3-4", "4.3.3-5", "4.3.3-6"
    ),
    "MQTT-4.3.3-2": same("QoS 2: what a receiver does", "4.3.3-8", "4.3.3-10", "4.3.3-11", "4.3.3-12"),
    "MQTT-4.4.0-1": same("after a reconnection what is unacknowledged is sent again", "4.4.0-1"),
    "MQTT-4.5.0-1": same("a message is added to the sessions of all matching subscriptions", "4.5.0-1"),
    "MQTT-4.5.0-2": outside("a client acknowledges every message", CLIENT_IS_5),
    "MQTT-4.6.0-1": outside("a client sends again in the order of sending", CLIENT_IS_5),
    "MQTT-4.6.0-2": outside("a client's PUBACKs are in the order of messages", CLIENT_IS_5),
    "MQTT-4.6.0-3": outside("a client's PUBRECs are in the order of messages", CLIENT_IS_5),
    "MQTT-4.6.0-4": outside("a client's PUBRELs are in the order of PUBRECs", CLIENT_IS_5),
    "MQTT-4.6.0-5": same("every topic is ordered by default", "4.6.0-6"),
    "MQTT-4.6.0-6": same("messages of one client to an ordered topic stay in order", "4.6.0-5"),
    "MQTT-4.7.1-1": same("wildcards are for filters, not for names", "4.7.0-1"),
    "MQTT-4.7.1-2": same("# stands alone in the last level", "4.7.1-1"),
    "MQTT-4.7.1-3": same("+ stands alone in its level", "4.7.1-2"),
    "MQTT-4.7.2-1": same("a wildcard at the beginning does not match a topic that begins with $", "4.7.2-1"),
    "MQTT-4.7.3-1": same("names and filters have at least one character", "4.7.3-1"),
    "MQTT-4.7.3-2": same("names and filters have no U+0000", "4.7.3-2"),
    "MQTT-4.7.3-3": same("names and filters have at most 65,535 bytes", "4.7.3-3"),
    "MQTT-4.7.3-4": same("names and filters are not normalised", "4.7.3-4"),
    "MQTT-4.8.0-1": same("a protocol violation ends the connection", "4.13.1-1"),
    "MQTT-4.8.0-2": own("an error that may pass ends the connection whose packet met it"),
    "MQTT-6.0.0-1": same("MQTT travels in binary frames; others close the connection", "6.0.0-1"),
    "MQTT-6.0.0-2": same("packets need not begin where frames do", "6.0.0-2"),
    "MQTT-6.0.0-3": same("a client offers the subprotocol mqtt", "6.0.0-3"),
    "MQTT-6.0.0-4": same("the server selects the subprotocol mqtt", "6.0.0-4"),
    "MQTT-7.0.0-1": outside(
        "a server that dials other servers is a client as well",
        "Links between brokers are connections of version 5, with packets that only brokers understand.",
    ),
    "MQTT-7.0.0-2": own("no extension is needed to work with others"),
    "MQTT-7.1.1-1": same("a server has a transport that is ordered and loses nothing", "4.2-1"),
    "MQTT-7.1.2-1": same("a client has a transport that is ordered and loses nothing", "4.2-1"),
}  # fmt: skip
