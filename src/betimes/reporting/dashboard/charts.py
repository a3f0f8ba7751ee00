"""The dashboard's charts: options for ECharts, from the current state of the network."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from betimes.reporting.dashboard.broker_watch import BrokerWatch, LinkNow, Moment
from betimes.reporting.figure_plots import OURS
from betimes.reporting.report_plots import placed

QUIET, BUSY = "#0072B2", OURS[0]
DOWN = "#CC0000"
BUSY_LOAD = 0.7
LOAD_SHOWN = 0.005  # loads that round to 0 % have no label: the two directions have room for one
INK = "#888888"  # readable on light and dark displays
NO_MOTION = {"animation": False, "textStyle": {"color": INK}}
PLAIN = {"color": INK, "fontSize": 14, "fontWeight": "normal"}
VALUES = {
    "type": "value",
    "axisLabel": {"color": INK},
    "splitLine": {"lineStyle": {"color": INK, "opacity": 0.25}},
}
LINE_WIDTH_MIN, LINE_WIDTH_MAX = 2.0, 9.0
WAITING_SHOWN = 12.0  # the largest growth of a dot


def network_options(watch: BrokerWatch) -> dict[str, Any]:
    """Return the network as a graph: dots grow with the queue length, links with their load."""
    links = watch.links()
    queue = {facts.name: facts.queue for facts in watch.brokers.values()}
    ends = {end for link in links for end in (link.source, link.target)}
    names = sorted(queue.keys() | ends)
    places = placed(names, [(link.source, link.target) for link in links])
    return {
        **NO_MOTION,
        "tooltip": {},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "top": 35,
                "bottom": 35,
                "left": 60,
                "right": 60,
                "label": {"show": True, "position": "bottom", "color": INK},
                "preserveAspect": True,
                "edgeLabel": {"color": INK, "fontSize": 12, "formatter": "{c} %", "offset": [0, -9]},
                "emphasis": {"focus": "adjacency"},
                "data": [_dot(name, places[name], queue.get(name)) for name in names],
                "links": [_line(link) for link in links],
            }
        ],
    }


def _dot(name: str, place: tuple[float, float], waiting: float | None) -> dict[str, Any]:
    grown = 0.0 if waiting is None else WAITING_SHOWN * waiting / (waiting + 50.0)
    text = name if not waiting else f"{name}: {waiting:,.0f} waiting"
    return {
        "id": name,
        "name": text,
        "x": round(place[0], 3),
        "y": round(place[1], 3),
        "symbolSize": 16.0 + 2.0 * grown,
        "itemStyle": {"color": "#009E73" if waiting is not None else INK},
    }


def _line(link: LinkNow) -> dict[str, Any]:
    if not link.is_up:
        return {
            "source": link.source,
            "target": link.target,
            "lineStyle": {"width": LINE_WIDTH_MIN, "color": DOWN, "type": "dashed", "curveness": 0.2},
            "label": {"show": True, "formatter": "down", "color": DOWN},
        }
    return {
        "source": link.source,
        "target": link.target,
        "lineStyle": {
            "width": LINE_WIDTH_MIN + (LINE_WIDTH_MAX - LINE_WIDTH_MIN) * link.load,
            "color": BUSY if link.load >= BUSY_LOAD else QUIET,
            "curveness": 0.2,
            "opacity": 0.8,
        },
        "value": round(100.0 * link.load),
        "label": {"show": link.load >= LOAD_SHOWN},
    }


def share_options(history: Sequence[Moment]) -> dict[str, Any]:
    """Return the on-time share over the last minutes."""
    shares = [None if each.on_time_share is None else round(each.on_time_share, 4) for each in history]
    return _over_time(history, "on-time share", shares, QUIET, most=1.0)


def earning_options(history: Sequence[Moment]) -> dict[str, Any]:
    """Return the earning per second over the last minutes."""
    earned = [round(each.earned_per_s, 2) for each in history]
    return _over_time(history, "earned a second", earned, "#009E73")


def _over_time(
    history: Sequence[Moment],
    name: str,
    values: Sequence[float | None],
    colour: str,
    most: float | None = None,
) -> dict[str, Any]:
    line = {"type": "line", "name": name, "data": values, "showSymbol": False, "connectNulls": False}
    clock = [time.strftime("%H:%M:%S", time.localtime(each.at_s)) for each in history]
    return {
        **NO_MOTION,
        "tooltip": {"trigger": "axis"},
        "grid": {"left": 50, "right": 15, "top": 15, "bottom": 25},
        "xAxis": {"type": "category", "data": clock, "axisLabel": {"color": INK}},
        "yAxis": {**VALUES, "min": 0, "max": most},
        "series": [{**line, "color": colour}],
    }


def drops_options(lost: Mapping[str, float] | None) -> dict[str, Any]:
    """Return a chart of lost messages by reason; `lost` is None if no broker has answered."""
    found = [] if lost is None else [(reason, count) for reason, count in lost.items() if count]
    rows = sorted(found, key=lambda pair: pair[1])
    if not rows:
        text = "" if lost is None else "Nothing was dropped."
        title = {"text": text, "left": "center", "top": "middle", "textStyle": PLAIN}
        return {**NO_MOTION, "title": title, "series": []}
    return {
        **NO_MOTION,
        "tooltip": {},
        "grid": {"left": 110, "right": 60, "top": 10, "bottom": 25},
        "xAxis": VALUES,
        "yAxis": {"type": "category", "data": [reason for reason, _ in rows], "axisLabel": {"color": INK}},
        "series": [
            {
                "type": "bar",
                "data": [count for _, count in rows],
                "color": BUSY,
                "label": {"show": True, "position": "right", "color": INK},
            }
        ],
    }
