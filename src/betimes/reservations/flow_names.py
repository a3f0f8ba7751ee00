"""The names of flows, and the facts that a name carries.

A flow is what one node publishes of one type, at one bandwidth: its *trunk*. If events have to reach the
home of each subscriber over given links, every home has a flow of its own (`home`); on a link these are
one, because an event crosses it once. A flow for one home alone has a number there, another one for each
route that is requested. So the remains of one route are not mistaken for the next, and a node can obtain a
flow by a second route before it releases the first. On links that both routes share they are one as well.
"""

from __future__ import annotations

from typing import NamedTuple

BEFORE_HOME = "|"
WHICHEVER = 0  # any bandwidth, or any route, of a flow
_WRITTEN = {"%": "%25", "@": "%40", BEFORE_HOME: "%7C"}  # characters with a meaning in names


class FlowName(NamedTuple):
    """The facts in the name of a flow."""

    event_type: str
    publisher: str  # the node where it enters
    bytes_per_s: int
    home: str | None = None  # the only node that it is for; None: all nodes below
    way: int = WHICHEVER  # the number of the route to that home

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
    """Return the facts in a name; None if it is not the name of a flow.

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
    """Return the type and the publisher's node of a flow, shared or private; None if it has none.

    >>> source_of("cars/a%7Cb@b1@20000|b%402"), source_of("cars@b1@20000#s@1")
    (('cars/a|b', 'b1'), ('cars', 'b1'))
    """
    event_type, *others = name.split("@")
    return (_read(event_type), _read(others[0])) if len(others) > 1 else None


def trunk_of(name: str) -> str:
    """Return the common name of all flows of one type, publisher and bandwidth."""
    return name.partition(BEFORE_HOME)[0]


def _written(text: str) -> str:
    return "".join([_WRITTEN.get(letter, letter) for letter in text])


def _read(text: str) -> str:
    for letter, written in reversed(_WRITTEN.items()):  # % is last
        text = text.replace(written, letter)
    return text
