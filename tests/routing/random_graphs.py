"""Which small networks are drawn for the tests of routing? Links among five brokers, any way round."""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import strategies as st

from betimes.model.topology import Link

NODES = ("a", "b", "c", "d", "e")

# coarse on purpose: equal sums, and so equally short paths, are to be met often; zero is a link too
_speeds = st.integers(0, 6).map(lambda number: number / 16)
_spreads = st.integers(0, 4).map(lambda number: number / 32)
_delays = st.sampled_from([0.0, 0.0, 0.125, 0.5])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Link, ...]:
    """Draw some of the links that five brokers can have."""
    pairs = draw(st.sets(st.sampled_from([(a, b) for a in NODES for b in NODES if a != b]), max_size=14))
    return tuple(
        Link(
            source=source,
            target=target,
            s_per_kb_mean=draw(_speeds),
            s_per_kb_sd=draw(_spreads),
            delay_s=draw(_delays),
        )
        for source, target in sorted(pairs)
    )


def every_path(links: tuple[Link, ...], source: str, target: str) -> list[list[Link]]:
    """Return every way from one broker to another that visits none twice."""
    by_ends = {(link.source, link.target): link for link in links}
    between = [node for node in NODES if node not in (source, target)]
    found = []
    for count in range(len(between) + 1):
        for middle in permutations(between, count):
            stops = (source, *middle, target)
            ways = [by_ends.get(ends) for ends in pairwise(stops)]
            if all(ways):
                found.append([link for link in ways if link is not None])
    return found
