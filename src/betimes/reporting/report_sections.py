"""The sections of `betimes report`, from the pipeline's tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from betimes.model.distributions import Histogram
from betimes.model.statistics import NetworkStatistics
from betimes.pipeline.live.alarms import measured_shares, predicted_shares
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.pipeline.tables.predictions import BY_TWIN, kept_predictions
from betimes.pipeline.tables.report_facts import FlowFacts, Leg, ReportFacts, report_facts
from betimes.pipeline.tables.shapes import ADMISSIONS
from betimes.pipeline.telemetry.model import learn_statistics, speeds_seen
from betimes.pipeline.telemetry.run_facts import RunFacts, read_facts
from betimes.prediction.forecasts import ForecastModel
from betimes.prediction.predict import predict
from betimes.reporting import report_plots
from betimes.reporting.page import PageTable, Section
from betimes.reporting.report_plots import draw_network

FIRST_COME = "They are computed from these tables and assume first come, first served."
FORETOLD = "The network's twin made them beforehand; they are stored with the tables."
NOTHING = "The tables have no data on this."


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The data of a report."""

    run: RunFacts
    facts: ReportFacts
    statistics: NetworkStatistics
    shares: tuple[report_plots.Share, ...]  # the worst served first
    admissions: tuple[dict[str, Any], ...]
    speeds: Mapping[str, Histogram]  # of links, by name, as they were seen
    predicted_by: str = FIRST_COME

    @property
    def off_mean(self) -> float | None:
        """Return the mean error of the predictions, over subscribers."""
        off = [abs(each.predicted - each.measured) for each in self.shares if each.predicted is not None]
        return sum(off) / len(off) if off else None


def findings_in(tables: Path, model: ForecastModel | None = None) -> Findings:
    """Read the current tables in a directory, with predictions.

    Without a model, they are the twin's predictions, if the tables have them; else they are computed here.
    """
    folder = current_tables(tables)
    statistics = learn_statistics(tables, looks_back=True)
    foretold = kept_predictions(folder, BY_TWIN) if model is None else {}
    predicted = foretold
    if not foretold and statistics.publishers and statistics.subscriptions:
        forecast = predict(statistics, model or ForecastModel.WAIT, early_drop=True)
        predicted = predicted_shares(statistics, forecast)
    shares = [_share(row, predicted) for row in measured_shares(folder)]
    return Findings(
        run=read_facts(folder),
        facts=report_facts(folder),
        statistics=statistics,
        shares=tuple(sorted(shares, key=lambda each: (each.measured, each.name))),
        admissions=tuple(read_arrow(ADMISSIONS, folder).to_pylist()),
        speeds=speeds_seen(folder),
        predicted_by=FORETOLD if foretold else FIRST_COME,
    )


def _share(row: Mapping[str, Any], predicted: Mapping[tuple[str, str], list[float]]) -> report_plots.Share:
    # telemetry measures a subscriber, not each of its subscriptions: average their predictions
    shares = predicted.get((row["subscriber"], row["home"]), [])
    return report_plots.Share(
        name=f"{row['subscriber']} at {row['home']}",
        measured=row["on_time_share"],
        low=row["on_time_share_low"],
        high=row["on_time_share_high"],
        predicted=sum(shares) / len(shares) if shares else None,
        earning=row["earning"],
        offered=row["offered"],
    )


def report_sections(found: Findings) -> list[Section]:
    """Return the sections of a report, the most asked first."""
    return [
        _shares_section(found),
        _network_section(found),
        _ways_section(found),
        _queues_section(found),
        _drops_section(found),
        _earnings_section(found),
        _links_section(found),
        _admissions_section(found),
        _doubts_section(found),
    ]


def _shares_section(found: Findings) -> Section:
    texts = [
        "The share of wanted messages that reached each subscriber within its bound; the worst served first."
    ]
    pictures = []
    if not found.shares:
        return Section(key="on-time", title="On time", texts=[NOTHING])
    if len(found.shares) > report_plots.ROWS_SHOWN:
        texts.append(f"The picture shows {report_plots.ROWS_SHOWN} of {len(found.shares):,} subscribers.")
    pictures.append(report_plots.draw_shares(found.shares))
    if found.off_mean is not None:
        texts.append(f"Predictions are {found.off_mean:.3f} off on average. {found.predicted_by}")
        pictures.append(report_plots.draw_agreement(found.shares))
    rows = [(each.name, each.measured, each.low, each.high, each.predicted) for each in found.shares]
    columns = ["subscriber", "measured", "at least", "at most", "predicted"]
    table = PageTable(columns=columns, rows=rows, right=columns[1:])
    return Section(key="on-time", title="On time", texts=texts, pictures=pictures, tables=[table])


def _network_section(found: Findings) -> Section:
    legs, over_s = found.facts.legs, found.run.over_s or 1.0
    carried: dict[tuple[str, str], float] = {}
    busy_s: dict[tuple[str, str], float] = {}
    for leg in legs:
        link = leg.source, leg.target
        carried[link] = carried.get(link, 0.0) + leg.count
        busy_s[link] = busy_s.get(link, 0.0) + leg.count * leg.transfer_s_mean
    homes: dict[str, int] = {}
    for each in found.statistics.subscriptions:
        homes[each.home] = homes.get(each.home, 0) + 1
    names = sorted(
        {each.name for each in found.statistics.brokers} | {end for link in carried for end in link}
    )
    if not names:
        return Section(key="network", title="The network", texts=[NOTHING])
    loads = {link: seconds / over_s for link, seconds in busy_s.items()}
    text = (
        "Dots are brokers, with their numbers of subscriptions; the width of a link is its message count. "
        "The percentage is the load: the share of time in which the link carried a message. Links that are "
        "busy most of the time are orange."
    )
    picture = draw_network(names, carried, loads, homes)
    return Section(key="network", title="The network", texts=[text], pictures=[picture])


def _ways_section(found: Findings) -> Section:
    ways = ways_of(found.facts.legs, found.facts.flows)
    if not ways:
        return Section(key="time", title="Delays along routes", texts=[NOTHING])
    text = (
        "Mean waiting and transmission times from the publisher's broker to the subscriber's, the routes "
        "with most deliveries first. Dropped messages are not included."
    )
    return Section(
        key="time", title="Delays along routes", texts=[text], pictures=[report_plots.draw_ways(ways)]
    )


def ways_of(legs: Sequence[Leg], flows: Sequence[FlowFacts]) -> list[report_plots.Way]:
    """Return the route of each flow, from origin to home, with the mean times on its links."""
    ways = []
    for flow in sorted(flows, key=lambda each: (-each.delivered, each.origin, each.home)):
        steps = _steps([leg for leg in legs if leg.origin == flow.origin], flow.origin, flow.home)
        if steps:
            times = tuple(
                (f"{leg.source} → {leg.target}", leg.wait_s_mean, leg.transfer_s_mean) for leg in steps
            )
            ways.append(
                report_plots.Way(name=f"{flow.origin} to {flow.home}", steps=times, delivered=flow.delivered)
            )
    return ways


def _steps(legs: Sequence[Leg], start: str, end: str) -> list[Leg]:
    """Return the shortest chain of legs from one broker to another; empty if there is no route."""
    came_by: dict[str, Leg | None] = {start: None}
    waiting = deque([start])
    while waiting and end not in came_by:
        here = waiting.popleft()
        for leg in legs:
            if leg.source == here and leg.target not in came_by:
                came_by[leg.target] = leg
                waiting.append(leg.target)
    steps: list[Leg] = []
    last = came_by.get(end)
    while last is not None:
        steps.append(last)
        last = came_by[last.source]
    return steps[::-1]


def _queues_section(found: Findings) -> Section:
    if not found.facts.queues:
        return Section(key="queues", title="Queues", texts=[NOTHING])
    text = "Messages that a broker had received and not forwarded yet. Dropped messages are not included."
    return Section(
        key="queues", title="Queues", texts=[text], pictures=[report_plots.draw_queues(found.facts.queues)]
    )


def _drops_section(found: Findings) -> Section:
    drops = found.facts.drops
    if not drops:
        return Section(key="drops", title="Dropped", texts=["Nothing was dropped."])
    reasons: dict[str, float] = {}
    for each in drops:
        reasons[each.reason] = reasons.get(each.reason, 0.0) + each.count
    rows = sorted(reasons.items(), key=lambda pair: -pair[1])
    table = PageTable(columns=["reason", "messages"], rows=rows, right=["messages"])
    return Section(key="drops", title="Dropped", pictures=[report_plots.draw_drops(drops)], tables=[table])


def _earnings_section(found: Findings) -> Section:
    if not any(each.offered for each in found.shares):
        return Section(key="earning", title="Earnings", texts=[NOTHING])
    earned, offered = (sum(getattr(each, name) for each in found.shares) for name in ("earning", "offered"))
    text = f"Messages in time earned {earned:,.0f} of the {offered:,.0f} on offer."
    return Section(
        key="earning", title="Earnings", texts=[text], pictures=[report_plots.draw_earnings(found.shares)]
    )


def _links_section(found: Findings) -> Section:
    links = [each for each in found.statistics.links if each.s_per_kb is not None]
    if not links:
        return Section(key="links", title="Links", texts=[NOTHING])
    text = (
        "The transmission time of a kilobyte: measured (bars), and the normal distribution of the same mean "
        "and deviation (line). A few very long times make the curve much wider than the bars; the picture "
        "ends four deviations from the mean."
    )
    texts = [text]
    unseen = [each.name for each in links if each.name not in found.speeds]
    if unseen:
        texts.append(f"There is no measured distribution of {', '.join(unseen[: report_plots.LINKS_SHOWN])}.")
    if len(links) > report_plots.LINKS_SHOWN:
        texts.append(f"The picture shows {report_plots.LINKS_SHOWN} of {len(links)} links.")
    rows = [
        (
            each.name,
            each.s_per_kb.mean * 1e3,
            each.s_per_kb.variance**0.5 * 1e3,
            f"{1 - each.reliability:.2%}",
        )
        for each in links
        if each.s_per_kb is not None
    ]
    columns = ["link", "mean, ms per kB", "deviation", "lost"]
    table = PageTable(columns=columns, rows=rows, right=columns[1:])
    picture = report_plots.draw_links(links, found.speeds)
    return Section(key="links", title="Links", texts=texts, pictures=[picture], tables=[table])


def _admissions_section(found: Findings) -> Section:
    if not found.admissions:
        return Section(key="promises", title="Admission", texts=["No subscriber asked for an on-time share."])
    rows = [
        (
            f"{each['subscriber']} at {each['home']}",
            each["pattern"],
            each["reliability"],
            each["predicted_share"],
            "admitted" if each["admitted"] else "refused",
            each["reason"],
        )
        for each in found.admissions
    ]
    columns = ["subscriber", "topics", "asked", "predicted", "answer", "reason"]
    table = PageTable(columns=columns, rows=rows, right=["asked", "predicted"])
    return Section(key="promises", title="Admission", tables=[table])


def _doubts_section(found: Findings) -> Section:
    """Return the section about data that the numbers do not include."""
    texts = []
    if found.run.is_unfinished:
        texts.append("Brokers were still writing, or were killed; unfinished rows are left out.")
    rows = list(found.run.quarantined.items())
    texts.append(f"{sum(found.run.quarantined.values()):,} bad rows of telemetry are in quarantine.")
    tables = [PageTable(columns=["reason", "rows"], rows=rows, right=["rows"])] if rows else []
    return Section(key="doubts", title="Left out", texts=texts, tables=tables)


def in_short(found: Findings) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    facts = report_json(found)
    share, off = facts["on_time_share"], facts["prediction_off_mean"]
    offered = facts["offered"]
    assumed = ", assuming first come, first served" if found.predicted_by == FIRST_COME else ""
    return [
        ("on-time share", "-" if share is None else f"{share:.1%}"),
        ("earned, of what was on offer", f"{facts['earning'] / offered:.1%}" if offered else "-"),
        ("messages wanted", f"{facts['wanted']:,.0f}"),
        ("dropped", f"{facts['dropped']:,.0f}"),
        (f"mean error of predictions{assumed}", "-" if off is None else f"{off:.3f}"),
        ("brokers", f"{facts['brokers']:,}"),
        ("subscribers", f"{facts['subscribers']:,}"),
    ]


def report_json(found: Findings) -> dict[str, Any]:
    """Return the page's main numbers."""
    return {
        "brokers": found.run.brokers,
        "links": found.run.links,
        "publishers": found.run.publishers,
        "subscribers": len(found.shares),
        "wanted": found.run.wanted,
        "on_time": found.run.on_time,
        "on_time_share": found.run.on_time_share,
        "earning": found.run.earning,
        "offered": sum(each.offered for each in found.shares),
        "dropped": sum(each.count for each in found.facts.drops),
        "prediction_off_mean": found.off_mean,
        "predictions": None if found.off_mean is None else found.predicted_by,
        "quarantined": sum(found.run.quarantined.values()),
    }
