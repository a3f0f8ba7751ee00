"""What does a broker keep of what is published, for who comes back (003, section 5.2)?"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.model.filters import EVERYTHING, Filter
from betimes.model.subscriptions import ANY_TOPIC

MESSAGES_MAX = 1_000_000
BYTES_MAX = 64_000_000
LRP, RANDOM, PWP = "lrp", "random", "pwp"
VALUE_DECAY, DISCONNECTION_AWARE = "value-decay", "disconnection-aware"
OVERWRITING_NAMES = (LRP, RANDOM, PWP, VALUE_DECAY, DISCONNECTION_AWARE)
OUTAGE_S_MEAN = 12.0  # t_SD of 003


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTerms:
    """One part of a buffer: what belongs there, how much of it, and what goes when it is full."""

    pattern: str = ANY_TOPIC
    filter: Filter = EVERYTHING
    messages_max: int = MESSAGES_MAX
    bytes_max: int = BYTES_MAX
    overwrite: str = LRP

    @property
    def takes_everything(self) -> bool:
        """Tell whether every message belongs there."""
        return self.pattern == ANY_TOPIC and self.filter == EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSettings:
    """How a broker keeps messages. Each goes into the first partition that it belongs to, or into none."""

    partitions: tuple[PartitionTerms, ...] = (PartitionTerms(),)
    outage_s_mean: float = OUTAGE_S_MEAN  # that subscribers are away, where a policy asks
    fetch: tuple[str, ...] = ()  # the topics that are asked of other brokers though nobody here wants them
    fetch_price: float = 1e-6  # of one such message: far less than anything is worth to a subscriber
    fetch_within_s: float = 60.0  # how old it may be when it comes
