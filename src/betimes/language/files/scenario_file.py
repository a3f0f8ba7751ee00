"""Scenario files: TOML becomes a `Scenario` or a `LayeredWorld`.

The result is a `Scenario` if the file lists brokers and links, a `LayeredWorld` if it has [generate]. The
caller reads the file; one `FileMistakesError` lists all mistakes of its text.
"""

from __future__ import annotations

from collections.abc import Mapping

from betimes.language.files.generated_world import read_world
from betimes.language.files.scenario_network import duration, read_network
from betimes.language.files.table_reader import Mistakes, TomlTable, name, positive
from betimes.language.files.toml import one_mistake, read_toml
from betimes.model.topology import LayeredWorld, Scenario

_PAPER_DURATION_S = 7200.0
_PAPER_PROCESSING_S = 0.002
_NETWORK_KEYS = ("brokers", "links", "publishers", "subscribers")


def read_scenario(text: str, source: str, *, is_live: bool = False) -> Scenario | LayeredWorld:
    """Return the world that a scenario file describes; `source` is the file's name in messages.

    What only a simulation needs (a duration, publishers, subscribers) may be missing for a live network.
    """
    mistakes = Mistakes()
    top = TomlTable(_toml(text, source), "", mistakes)
    generated = "generate" in top
    title = top.optional("name", name, "layered" if generated else "scenario")
    if generated or is_live:
        duration_s = top.optional("duration", positive(duration), _PAPER_DURATION_S)
    else:
        duration_s = top.required("duration", positive(duration), _PAPER_DURATION_S, '"10m"')
    processing_s = top.optional("processing", duration, _PAPER_PROCESSING_S)
    world: Scenario | LayeredWorld
    if generated:
        _refuse_both(top)
        world = read_world(top, title=title, duration_s=duration_s, processing_s=processing_s)
    else:
        network = read_network(top, needs_people=not is_live)
        world = Scenario(
            name=title,
            duration_s=duration_s,
            processing_s=processing_s,
            brokers=network.brokers,
            links=network.links,
            publishers=network.publishers,
            subscriptions=network.subscriptions,
            faults=network.faults,
        )
    top.close()
    mistakes.raise_if_any(source)
    return world


def _toml(text: str, source: str) -> Mapping[str, object]:
    """Return the TOML data; an empty file is a mistake."""
    data = read_toml(text, source)
    if not data:
        hint = (
            "write [generate] for the network of the paper, or [[brokers]], [[links]] and so on for your own"
        )
        raise one_mistake(source, "file", "it is empty", hint)
    return data


def _refuse_both(top: TomlTable) -> None:
    """Note brokers and links in a file that also asks for a generated world."""
    for key in _NETWORK_KEYS:
        if key in top:
            top.complain(key, "this does not go with [generate]", "keep one of the two")
            top.ignore(key)
