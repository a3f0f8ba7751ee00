"""The nemesis of chaos runs: it does harm to brokers and links, real or simulated, and undoes all of it.

Each fault ends by itself within `UNDONE_S`. What a fault does to a broker is the broker's own affair
(`FaultyBroker`), so that simulated and real networks have the same schedules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from tests.chaos.checker import Log

UNDONE_S = 8.0  # every fault is undone so long after it


class FaultyBroker(Protocol):
    """A broker that can be harmed. What makes no sense in its present state does nothing."""

    name: str
    dials: list[str]

    @property
    def is_alive(self) -> bool:
        """Tell whether its process is there."""

    @property
    def is_stopped(self) -> bool:
        """Tell whether its process is stopped."""

    @property
    def is_ready(self) -> bool:
        """Tell whether it has said that it serves: before that, it is not to be sent SIGHUP."""

    def start(self) -> None:
        """Begin a life, unless it lives."""

    def kill(self, when: str = "now") -> None:
        """Die without a word, at once or at a moment that is unfavourable."""

    def shut_down(self) -> None:
        """End gracefully."""

    def stop(self) -> None:
        """Stop, as by SIGSTOP."""

    def resume(self) -> None:
        """Go on, as by SIGCONT."""

    def set_clock(self, ahead_s: float) -> bool:
        """Have a wrong clock from the next life on; False: that cannot be done here."""

    def fill_disk(self) -> None:
        """Let the store find no room from now on."""

    def free_disk(self) -> None:
        """Let the store find room again."""

    def reload(self) -> None:
        """Read the access list again, as on SIGHUP."""


class FaultyPath(Protocol):
    """One direction of a link."""

    is_cut: bool

    def cut(self) -> None:
        """Carry nothing; what is under way waits."""

    def heal(self) -> None:
        """Carry bytes again, also those that waited."""

    def slow_down(self, delay_s: float | None) -> None:
        """Take so long for each byte; None: as usual."""


class FaultyNetwork(Protocol):
    """The brokers, the paths between them, and a clock."""

    @property
    def now_s(self) -> float:
        """Return the time."""

    @property
    def brokers(self) -> Mapping[str, FaultyBroker]:
        """Return all brokers by name."""

    def path(self, one: str, other: str) -> FaultyPath:
        """Return the path from one broker to another that it has a link with."""

    def at(self, time_s: float, call: Callable[[], Any]) -> None:
        """Have something done at a time."""


class Nemesis:
    """Does harm, one fault at a time; the log counts them by kind."""

    def __init__(self, net: FaultyNetwork, chance: random.Random, log: Log) -> None:
        self.chance = chance
        self._net = net
        self._log = log

    def strike(self) -> None:
        """Commit one fault; one that is not possible now is replaced by another."""
        for _ in range(100):
            kind = self.chance.choice(list(self._KINDS))
            if self._KINDS[kind](self):
                self._log.faults[kind] += 1
                self._log.note(self._net.now_s, f"fault: {kind}")
                return

    def _broker(self) -> FaultyBroker:
        broker = self.chance.choice(list(self._net.brokers.values()))
        self._log.note(self._net.now_s, f"nemesis looks at {broker.name}")
        return broker

    def _later(self, longest_s: float, call: Callable[[], Any]) -> None:
        self._net.at(self._net.now_s + self.chance.uniform(0.05, 1.0) * longest_s, call)

    def _kill(self) -> bool:
        broker = self._broker()
        if not broker.is_alive:
            return False
        broker.kill(self.chance.choice(["now", "before it commits", "before it writes"]))
        self._later(4.0, broker.start)
        return True

    def _shut_down(self) -> bool:
        broker = self._broker()
        if not broker.is_alive or broker.is_stopped:
            return False
        broker.shut_down()
        self._later(4.0, broker.start)
        return True

    def _stop(self) -> bool:
        broker = self._broker()
        if not broker.is_alive or broker.is_stopped:
            return False
        broker.stop()
        self._later(6.0, broker.resume)
        return True

    def _ways(self) -> list[FaultyPath]:
        broker = self._broker()
        if not broker.dials:
            return []
        other = self.chance.choice(broker.dials)
        both = [self._net.path(broker.name, other), self._net.path(other, broker.name)]
        return self.chance.choice([both, both, both[:1], both[1:]])

    def _cut(self) -> bool:
        ways = [each for each in self._ways() if not each.is_cut]
        for path in ways:
            path.cut()

        def heal() -> None:
            for path in ways:
                path.heal()

        self._later(6.0, heal)
        return bool(ways)

    def _delay(self) -> bool:
        ways, delay_s = self._ways(), self.chance.uniform(0.01, 1.0)
        for path in ways:
            path.slow_down(delay_s)

        def undo() -> None:
            for path in ways:
                path.slow_down(None)

        self._later(8.0, undo)
        return bool(ways)

    def _skew(self) -> bool:
        broker = self._broker()
        if not broker.is_alive or not broker.set_clock(self.chance.choice([-3600.0, 3600.0, -5.0, 0.0])):
            return False
        broker.kill()
        self._later(4.0, broker.start)
        return True

    def _fill_disk(self) -> bool:
        broker = self._broker()
        broker.fill_disk()
        self._later(5.0, broker.free_disk)
        return True

    def _reload(self) -> bool:
        broker = self._broker()
        if not broker.is_alive or broker.is_stopped or not broker.is_ready:
            return False
        broker.reload()
        return True

    _KINDS: ClassVar[dict[str, Callable[[Nemesis], bool]]] = {
        "kill": _kill,
        "restart": _shut_down,
        "stop": _stop,
        "cut": _cut,
        "delay": _delay,
        "skew": _skew,
        "full disk": _fill_disk,
        "reload": _reload,
    }
