"""Prometheus exposition of the statistics of a broker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from betimes import __version__
from betimes.broker.delivery.denials import DenialKind
from betimes.broker.observe.statistics import Statistics

CONTENT_TYPE = CONTENT_TYPE_LATEST

_Family = CounterMetricFamily | GaugeMetricFamily


def exposition(statistics: Statistics, lag_s: float) -> str:
    """Return what Prometheus reads: the same numbers as below $SYS, and more."""
    registry = CollectorRegistry()
    registry.register(_Found(_families(statistics, lag_s)))
    return generate_latest(registry).decode()


class _Found(Collector):
    """What was found once."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return all of it."""
        return self._families


def _families(statistics: Statistics, lag_s: float) -> Iterable[Metric]:
    gauges: dict[str, tuple[str, float]] = {
        "uptime_seconds": ("Since the start.", statistics.uptime_s),
        "connections": ("Clients that are connected.", statistics.connected),
        "sessions": ("Sessions, of clients that are connected and of others.", statistics.sessions),
        "subscriptions": ("Subscriptions.", statistics.subscriptions),
        "retained_messages": ("Retained messages.", statistics.retained),
        "queue_bytes": ("What waits for clients, about.", statistics.queue_bytes),
        "accounts_bytes": ("What all accounts take of memory, about.", statistics.accounts_bytes),
        "accounts_bytes_max": (
            "What they may take; the last quarter is for small ones.",
            statistics.accounts_bytes_max,
        ),
        "links": ("Links to other brokers that are up.", len(statistics.links_s_per_kb)),
        "link_queue_messages": ("Messages that wait for links.", statistics.waiting_for_links),
        "no_route_messages": ("Messages among them that no link leads to.", statistics.waiting_without_route),
        "event_loop_lag_seconds": ("By how much the server's clock was late, at the worst of 15 s.", lag_s),
    }
    counts = statistics.counters
    counters = {
        "publications_received": ("Publications taken in.", counts.received),
        "publications_sent": ("Copies of publications sent.", counts.sent),
        "earned": ("What subscribers pay for all that they were sent in time.", statistics.earned),
        "packets_received": ("Packets of MQTT received.", counts.packets_received),
        "packets_sent": ("Packets of MQTT sent.", counts.packets_sent),
        "bytes_received": ("Bytes of MQTT received.", counts.bytes_received),
        "bytes_sent": ("Bytes of MQTT sent.", counts.bytes_sent),
        "connections_refused": ("Too many at once, or too many a second.", counts.connections_refused),
        "read_pauses": ("Of clients publishing faster than they may, or others can read.", counts.pauses),
        "publications_repeated": ("Not taken in: they had come before under their key.", counts.repeated),
    }
    if statistics.admission is not None:
        given, refused = statistics.admission
        counters["promises_given"] = ("Subscriptions admitted with the on-time share they asked for.", given)
        counters["promises_refused"] = (
            "Subscriptions refused: less is predicted than they ask for.",
            refused,
        )
    if statistics.guarantees is not None:
        given, refused = statistics.guarantees
        counters["guarantees_given"] = ("Subscriptions with bandwidth reserved all the way.", given)
        counters["guarantees_refused"] = ("Subscriptions refused for want of it.", refused)
    if statistics.handed_over is not None:
        came, went = statistics.handed_over
        counters["sessions_taken_over"] = ("Of clients that came from another broker.", came)
        counters["sessions_handed_over"] = ("Of clients that went to another broker.", went)
    if statistics.kept is not None:
        kept = statistics.kept
        gauges["buffer_messages"] = ("Messages in the replay buffer.", kept.messages)
        gauges["buffer_bytes"] = ("What those take, about.", kept.size_bytes)
        counters["buffer_overwritten"] = ("Messages kept no longer, for newer ones.", kept.overwritten)
        counters["resumed_subscriptions"] = ("Subscriptions that were resumed.", kept.resumed)
        counters["replayed_messages"] = ("Sent to those, of what they had missed.", kept.replayed)
        counters["gaps_told"] = ("To those, of what they missed and is not here.", kept.gaps_told)
    build = InfoMetricFamily("betimes_build", "What runs here.", value={"version": __version__})
    name = InfoMetricFamily("betimes_broker", "The name of the broker.", value={"name": statistics.broker})
    found: list[Metric] = [build, name]
    found += [GaugeMetricFamily(f"betimes_{name}", text, value) for name, (text, value) in gauges.items()]
    found += [CounterMetricFamily(f"betimes_{name}", text, value) for name, (text, value) in counters.items()]
    return [*found, *_labelled_families(statistics)]


def _labelled_families(statistics: Statistics) -> Iterable[Metric]:
    """Yield the metrics by reason, and those of each link to another broker."""
    carried = statistics.links_carried
    lost = {reason.value: count for reason, count in statistics.lost.items()}
    reserved_bytes = {name: kb * 1000.0 for name, kb in statistics.reserved_kb.items()}
    messages = {name: count for name, (count, _) in carried.items()}
    sent_bytes = {name: kb * 1000.0 for name, (_, kb) in carried.items()}
    is_up = {name: float(each.is_up) for name, each in statistics.link_health.items()}
    up = {name: each for name, each in statistics.link_health.items() if each.heard_s < math.inf}
    backlog = {name: float(each.backlog) for name, each in statistics.link_health.items()}
    heard_s = {name: each.heard_s for name, each in up.items()}
    round_trip_s = {name: each.round_trip_s for name, each in up.items()}
    denied = {kind.value: statistics.counters.denials.count[kind] for kind in DenialKind}
    speeds, promised = statistics.links_s_per_kb, statistics.promised_bytes_per_s
    gauge, counter, reason, link = GaugeMetricFamily, CounterMetricFamily, "reason", "neighbour"
    rows: list[tuple[type[_Family], str, str, str, Mapping[str, float]]] = [
        (counter, "lost", reason, "Publications, or copies of them, that did not arrive.", lost),
        (
            counter,
            "denied",
            "kind",
            "Denied logins, publications, subscriptions and links, and exceeded quotas.",
            denied,
        ),
        (gauge, "link_up", link, "1: the link is up; 0: it is down, or its neighbour is silent.", is_up),
        (gauge, "link_backlog_messages", link, "Messages that wait, and that the link may carry.", backlog),
        (gauge, "link_heard_seconds", link, "Since the neighbour was heard of.", heard_s),
        (gauge, "link_round_trip_seconds", link, "The shortest of the last minutes.", round_trip_s),
        (gauge, "link_seconds_per_kilobyte", link, "How slow each link is, on average.", speeds),
        (gauge, "link_promised_bytes_per_second", link, "What is reserved on each link.", promised),
        (counter, "link_reserved_bytes", link, "What went over each link as reserved.", reserved_bytes),
        (counter, "link_sent_messages", link, "Messages sent over each link.", messages),
        (counter, "link_sent_bytes", link, "What those hold.", sent_bytes),
    ]
    for kind, name, label, text, values in rows:
        family = kind(f"betimes_{name}", text, labels=[label])
        for each, value in values.items():
            family.add_metric([each], value)
        yield family
