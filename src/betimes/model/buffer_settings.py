"""The settings of the replay buffer (003, section 5.2)."""

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
    """One partition of a buffer: what belongs there, its limits, and its policy of overwriting."""

    pattern: str = ANY_TOPIC
    filter: Filter = EVERYTHING
    messages_max: int = MESSAGES_MAX
    bytes_max: int = BYTES_MAX
    overwrite: str = LRP

    @property
    def takes_everything(self) -> bool:
        """Return whether every message belongs there."""
        return self.pattern == ANY_TOPIC and self.filter == EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSettings:
    """How a broker keeps messages. Each goes into the first partition that it belongs to, or into none."""

    partitions: tuple[PartitionTerms, ...] = (PartitionTerms(),)
    outage_s_mean: float = OUTAGE_S_MEAN  # that subscribers are away, for policies that use it
    fetch: tuple[str, ...] = ()  # topics requested from other brokers even without a subscriber here
    fetch_price: float = 1e-6  # of one such message: far less than its value to any subscriber
    fetch_within_s: float = 60.0  # its age limit on arrival
