"""A SUBSCRIBE, read once: its topic filters and what its user properties ask for."""

from __future__ import annotations

from dataclasses import dataclass

import mqtt5

from betimes.broker.replay.range_read import Until, read_until
from betimes.broker.replay.resume import Resume, read_resume
from betimes.model.guarantees import Guarantee
from betimes.mqtt.subscribe_options import SubscribeOptions, read_options


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeRequest:
    """What a client asks for in one SUBSCRIBE."""

    packet: mqtt5.SubscribePacket
    options: SubscribeOptions | None  # filter, bound, price, reliability, guarantee
    resume: Resume | None  # from where, after an absence
    until: Until | None  # a range of the past is read, and nothing stays subscribed

    @property
    def filters(self) -> list[str]:
        """Return the topic filters as they were written."""
        return [each.pattern for each in self.packet.topic_filters]

    @property
    def guarantee(self) -> Guarantee | None:
        """Return the bandwidth and latency that are to be reserved, if any."""
        return None if self.options is None else self.options.qos.guarantee


def read_request(packet: mqtt5.SubscribePacket) -> SubscribeRequest:
    """Return what a SUBSCRIBE asks for; what cannot be read is a `TextError`."""
    properties = packet.user_properties
    return SubscribeRequest(
        packet=packet,
        options=read_options(properties),
        resume=read_resume(properties),
        until=read_until(properties),
    )
