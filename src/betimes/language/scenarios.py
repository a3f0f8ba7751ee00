"""What world does a scenario file describe?

TOML in; a `Scenario` where the file lists brokers and links, a `LayeredWorld` where it has [generate].
The caller reads the file; all that is wrong with its text is listed in one `FileMistakesError`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from betimes.language.networks import duration, read_network
from betimes.language.tables import Mistakes, Table, name, positive
from betimes.language.worlds import read_world
from betimes.model.errors import FileMistakesError, Mistake
from betimes.model.topology import LayeredWorld, Scenario

TEXT_LENGTH_MAX = 500_000_000

_PAPER_DURATION_S = 7200.0
_PAPER_PROCESSING_S = 0.002
_NETWORK_KEYS = ("brokers", "links", "publishers", "subscribers")


def read_scenario(text: str, source: str) -> Scenario | LayeredWorld:
    """Return the world that a scenario file describes; `source` is what messages call the file."""
    mistakes = Mistakes()
    top = Table(_toml(text, source), "", mistakes)
    generated = "generate" in top
    title = top.optional("name", name, "layered" if generated else "scenario")
    if generated:
        duration_s = top.optional("duration", positive(duration), _PAPER_DURATION_S)
    else:
        duration_s = top.required("duration", positive(duration), _PAPER_DURATION_S, '"10m"')
    processing_s = top.optional("processing", duration, _PAPER_PROCESSING_S)
    world: Scenario | LayeredWorld
    if generated:
        _refuse_both(top)
        world = read_world(top, title=title, duration_s=duration_s, processing_s=processing_s)
    else:
        network = read_network(top)
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
    """Return what the TOML says; a text that is no TOML is one mistake, with its line."""
    if len(text) > TEXT_LENGTH_MAX:
        raise _one_mistake(source, "file", f"it has more than {TEXT_LENGTH_MAX:,} letters")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise _one_mistake(source, "file", "its lists or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise _one_mistake(source, *_syntax_mistake(text, str(error))) from None
    except ValueError:  # tomllib lets through what int() says of thousands of digits
        raise _one_mistake(source, "file", "a number in it has thousands of digits") from None
    if not data:
        hint = (
            "write [generate] for the network of the paper, or [[brokers]], [[links]] and so on for your own"
        )
        raise _one_mistake(source, "file", "it is empty", hint)
    return data


def _syntax_mistake(text: str, message: str) -> tuple[str, str]:
    """Return place and problem of a message of tomllib, which has the place in its words only."""
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    problem = f"this is not TOML: {message[: found.start()] if found else message}"
    if found and found.group(1):
        return f"line {found.group(1)}, column {found.group(2)}", problem
    return f"line {text.count(chr(10)) + 1}", problem


def _refuse_both(top: Table) -> None:
    """Note what is drawn by hand in a file that also asks for a generated world."""
    for key in _NETWORK_KEYS:
        if key in top:
            top.complain(key, "this does not go with [generate]", "keep one of the two")
            top.ignore(key)


def _one_mistake(source: str, place: str, problem: str, hint: str = "") -> FileMistakesError:
    return FileMistakesError(source, (Mistake(place=place, problem=problem, hint=hint),))
