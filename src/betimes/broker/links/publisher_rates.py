"""What do the publishers of this broker send? Measured, and told to the other brokers as advertisements.

MQTT has no way for a publisher to say what it will publish, so its broker says what it has published lately:
by publisher and the first level of its topics, how often and how large.
"""

from __future__ import annotations

from betimes.model.subscriptions import Advertisement

ADVERTS_MAX = 1_000  # of one broker; those who send least are not told of
MEMORY = 0.5  # of the rate of the time before


class PublisherRates:
    """Counts what is published, and turns the counts into advertisements."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}  # messages and KB since the last time
        self._rates: dict[tuple[str, str], tuple[float, float]] = {}  # per second, and KB of one
        self._since_s: float | None = None

    def count(self, publisher: str, topic: str, size_kb: float) -> None:
        """Note one publication."""
        key = (publisher, topic.partition("/")[0])
        messages, kb = self._counts.get(key, (0, 0.0))
        if messages or len(self._counts) < 2 * ADVERTS_MAX:
            self._counts[key] = (messages + 1, kb + size_kb)

    def take(self, now_s: float) -> list[Advertisement]:
        """Return what is published here by now; who has fallen silent fades, and is gone after a while."""
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
            if rate * past_s > MEMORY**4:  # some ten times after its last word
                rates[key] = (rate, kb / messages if messages else size_kb)
        largest = sorted(rates, key=lambda key: (-rates[key][0], key))[:ADVERTS_MAX]
        self._rates = {key: rates[key] for key in largest}
        return [
            Advertisement(
                publisher=publisher, broker=self._broker, topic=topic, rate_per_s=rate, size_kb_mean=size_kb
            )
            for (publisher, topic), (rate, size_kb) in self._rates.items()
        ]
