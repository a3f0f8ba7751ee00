"""What does a subscriber tell before it is killed? One client, a line on standard output for all it got.

`mobile_subscribers.py` starts it with what is had, and kills it (`kill -9`) at any moment. What stands in the
pipe by then it had; a line that was cut off it had not.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys

import mqtt5


def lines_of(packet: mqtt5.Packet) -> list[str]:
    """Return what there is to tell of a packet."""
    if isinstance(packet, mqtt5.SubAckPacket):
        if packet.reason_codes[0].value >= 0x80:
            return ["refused"]
        return [f"position {value}" for name, value in packet.user_properties if name == "position"]
    if not isinstance(packet, mqtt5.PublishPacket):
        return []
    if packet.topic.startswith("$"):
        gap = json.loads(packet.payload)
        return [f"gap {gap['origin']} {gap['first']} {gap['last']}"]
    return [f"got {packet.payload.decode()} {dict(packet.user_properties)['$id']}"]


def main() -> None:
    port, name, decade, *tokens = sys.argv[1:]
    wish = [("filter", f"selector = {decade}"), *(("resume-after", each) for each in tokens)]
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(mqtt5.ConnectPacket(name, clean_start=True, keep_alive=0).write())
        connection.sendall(
            mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("mobile")], user_properties=wish).write()
        )
        rest = b""
        while data := connection.recv(65_536):
            view, at, lines = memoryview(rest + data), 0, []
            while at < len(view):
                try:
                    packet, size = mqtt5.read(view[at:])
                except IndexError:
                    break
                at += size
                lines += lines_of(packet)
            rest = bytes(view[at:])
            text = "".join(f"{line}\n" for line in lines).encode()
            while text:  # a pipe takes a part of it at a time
                text = text[os.write(1, text) :]


if __name__ == "__main__":
    with contextlib.suppress(ConnectionError):  # it is started again
        main()
