"""Made-up results of the figures of 004, with the shapes that the paper has, as if they had been run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from betimes.experiments.figure import Claim, Figure, FigurePlan

LATENCY_MS = {"indiqos": 150.0, "direct": 110.0, "coord": 90.0}  # with one replica
MESSAGES = {"fns": 100.0, "fns-every": 9000.0, "fr": 6000.0, "direct": 15.0, "coord": 19.0}
ACCEPTED = {"fns": 1500, "fns-every": 1500, "fr": 1500, "direct": 800, "coord": 1300}


def made_up(figure: Figure, *, seeds: tuple[int, ...] = (1, 2), quick: bool = False) -> list[dict[str, Any]]:
    """Return a result for each row."""
    return [{**row, **_result(row)} for row in figure.rows(FigurePlan(seeds=seeds, quick=quick))]


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    scheme, replicas, types = str(row["scheme"]), int(row["replicas"]), int(row["types"])
    accepted = ACCEPTED.get(scheme, 8 * types + 30 * replicas) * (2 if row["shared"] else 1)
    return {
        "accepted": accepted,
        "refused": 100,
        "utilisation": 0.2 * types + 0.1 * replicas / types,
        "latency_ms": LATENCY_MS.get(scheme, 70.0) * (0.6 + 0.4 / replicas),
        "messages": MESSAGES.get(scheme, 13.0 + 7.0 * replicas),
    }


def claim_with(claims: list[Claim], words: str) -> Claim:
    """Return the one claim that has these words."""
    (found,) = [claim for claim in claims if words in claim.text]
    return found
