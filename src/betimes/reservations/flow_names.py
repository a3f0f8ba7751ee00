"""What is a flow called, and what does its name tell?

A flow is what one node publishes of one type, at one bandwidth: its *trunk*. Where events have to find the
home of each subscriber over links that are given, every home has a flow of its own (`home`); on a link they
are one, because an event goes over it once. A flow that is for one home alone has a number there, another
one for each way that is asked for: so what is left of one is not taken for the next, and a node can have a
flow by a second way before it gives the first one back. On links that both take they are one as well.
"""

from __future__ import annotations

from typing import NamedTuple

BEFORE_HOME = "|"
WHICHEVER = 0  # as the bandwidth or the way of a flow
_WRITTEN = {"%": "%25", "@": "%40", BEFORE_HOME: "%7C"}  # what has a meaning in names


class FlowName(NamedTuple):
    """What the name of a flow tells."""

    event_type: str
    publisher: str  # the node where it enters
    bytes_per_s: int
    home: str | None = None  # the only node that it is for; None: whoever is below
    way: int = WHICHEVER  # to that home, by its number

    @property
    def name(self) -> str:
        """Return the flow's name.

        >>> Flow("cars", "b1", 20_000).name, Flow("cars/a|b", "b1", 20_000, "b@2").name
        ('cars@b1@20000', 'cars/a%7Cb@b1@20000|b%402')
        >>> Flow("cars", "b1", 20_000, "b9", 3).name
        'cars@b1@20000|b9|3'
        """
        assert not self.way or self.home is not None, "another way is for one home"
        trunk = f"{_written(self.event_type)}@{_written(self.publisher)}@{self.bytes_per_s}"
        homeward = [] if self.home is None else [_written(self.home)]
        return BEFORE_HOME.join([trunk, *homeward, *([str(self.way)] if self.way else [])])


def read_flow(name: str) -> FlowName | None:
    """Return what a name tells; None where it is that of no flow.

    >>> read_flow("cars/a%7Cb@b1@20000|b%402|3")
    Flow(event_type='cars/a|b', publisher='b1', bytes_per_s=20000, home='b@2', way=3)
    """
    trunk, *homeward = name.split(BEFORE_HOME)
    parts = trunk.split("@")
    if len(parts) != 3 or not parts[2].isdecimal() or len(homeward) > 2:
        return None
    home, way = [*homeward, *["", "0"][len(homeward) :]]
    if not way.isdecimal() or (len(homeward) == 2 and not home):
        return None
    event_type, publisher, bandwidth = parts
    return FlowName(
        _read(event_type), _read(publisher), int(bandwidth), _read(home) if home else None, int(way)
    )


def source_of(name: str) -> tuple[str, str] | None:
    """Return the type and the publisher's node of a flow, shared or one's own; None where there are none.

    >>> source_of("cars/a%7Cb@b1@20000|b%402"), source_of("cars@b1@20000#s@1")
    (('cars/a|b', 'b1'), ('cars', 'b1'))
    """
    event_type, *others = name.split("@")
    return (_read(event_type), _read(others[0])) if len(others) > 1 else None


def trunk_of(name: str) -> str:
    """Return what all flows of one type, publisher and bandwidth have in common."""
    return name.partition(BEFORE_HOME)[0]


def _written(text: str) -> str:
    return "".join([_WRITTEN.get(letter, letter) for letter in text])


def _read(text: str) -> str:
    for letter, written in reversed(_WRITTEN.items()):  # % comes last
        text = text.replace(written, letter)
    return text
