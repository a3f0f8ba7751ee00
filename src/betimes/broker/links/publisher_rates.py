"""Measured rates of this broker's publishers, announced to other brokers as advertisements.

MQTT has no way for a publisher to advertise, so its broker announces what it has published recently: the rate
and the mean size, by publisher and first level of the topic.
"""

from __future__ import annotations

from betimes.model.subscriptions import Advertisement

ADVERTS_MAX = 1_000  # of one broker; the publishers with the lowest rates are left out
MEMORY = 0.5  # weight of the earlier rate


class PublisherRates:
    """Counts publications, and turns the counts into advertisements."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}  # messages and KB since the last `take`
        self._rates: dict[tuple[str, str], tuple[float, float]] = {}  # messages per second, and mean KB
        self._since_s: float | None = None

    def count(self, publisher: str, topic: str, size_kb: float) -> None:
        """Count one publication. O(1)."""
        key = (publisher, topic.partition("/")[0])
        messages, kb = self._counts.get(key, (0, 0.0))
        if messages or len(self._counts) < 2 * ADVERTS_MAX:
            self._counts[key] = (messages + 1, kb + size_kb)

    def take(self, now_s: float) -> list[Advertisement]:
        """Return the current advertisements; the rate of a silent publisher decays until it is left out."""
        counts, self._counts = self._counts, {}
        past_s = 0.0 if self._since_s is None else now_s - self._since_s
        self._since_s = now_s
        if past_s <= 0.0:
            return []
        rates = {}
        for key in {*counts, *self._rates}:
            messages, kb = counts.get(key, (0, 0.0))
            before, size_kb = self._rates.get(key, (messages / past_s, kb / max(messages, 1)))
            rate = MEMORY * before + (1.0 - MEMORY) * messages / past_s
            if rate * past_s > MEMORY**4:  # about ten calls after its last message
                rates[key] = (rate, kb / messages if messages else size_kb)
        largest = sorted(rates, key=lambda key: (-rates[key][0], key))[:ADVERTS_MAX]
        self._rates = {key: rates[key] for key in largest}
        return [
            Advertisement(
                publisher=publisher, broker=self._broker, topic=topic, rate_per_s=rate, size_kb_mean=size_kb
            )
            for (publisher, topic), (rate, size_kb) in self._rates.items()
        ]
