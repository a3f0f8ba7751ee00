"""The scheduling strategies: which waiting message a free link sends first (000, section 5).

A strategy appraises the waiting messages and scores the candidates. The highest score is sent first; ties
go to the message that has waited longest. The paper's abbreviations: EB expected benefit, PC postponing
cost, EBPC both, RL remaining lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.language.suggestions import near_or_listed
from betimes.model.errors import SettingError
from betimes.scheduling.appraisal import (
    Appraise,
    Weights,
    appraise_any_way,
    appraise_benefit,
    appraise_lifetime,
)

HOPELESS_AT = 0.0005  # epsilon of eq. 11 in the paper's simulation
# epsilon of our own strategies under load: a message this unlikely only takes time from others
LITTLE_CHANCE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a broker chooses the next message of a free link, and which messages it drops."""

    name: str
    about: str
    score: Weights
    appraise: Appraise = appraise_benefit
    hopeless_at: float = HOPELESS_AT
    hopeless_at_crowded: float = (
        HOPELESS_AT  # the same under full load; between, it is proportional to the contention
    )
    postponed_by: float = 1.0  # in transmission times; FT of eq. 6 is one
    counts_waits: bool = False  # use the waits measured downstream
    any_way: bool = False  # every neighbour nearer to the destination is a route, not only the shortest

    def gives_up_at(self, contention: float) -> float:
        """Return the probability at or below which a message is hopeless (epsilon of eq. 11).

        On an idle network a message with a small chance costs nothing; under load it delays other messages.
        """
        return self.hopeless_at + (self.hopeless_at_crowded - self.hopeless_at) * contention


FIRST_COME = Weights()  # equal scores, so that the message that has waited longest is first
LEAST_LIFETIME = Weights(lifetime_s=-1.0)
EXPECTED_BENEFIT = Weights(benefit=1.0)
POSTPONING_COST = Weights(benefit=1.0, postponed_benefit=-1.0)  # PC = EB - EB' (eq. 9)


def benefit_and_cost(benefit_weight: float) -> Weights:
    """Return the score EBPC = r * EB + (1 - r) * PC (eq. 10), which is EB - (1 - r) * EB'."""
    if not 0.0 <= benefit_weight <= 1.0:
        raise SettingError("r", benefit_weight, "the weight of EB must be between 0 and 1")
    return Weights(benefit=1.0, postponed_benefit=benefit_weight - 1.0)


FIFO = Strategy(name="fifo", about="first come, first served", score=FIRST_COME, appraise=appraise_lifetime)
RL = Strategy(
    name="rl", about="least remaining lifetime first", score=LEAST_LIFETIME, appraise=appraise_lifetime
)
EB = Strategy(name="eb", about="greatest expected benefit first (000)", score=EXPECTED_BENEFIT)
PC = Strategy(name="pc", about="greatest postponing cost first (000)", score=POSTPONING_COST)


def ebpc(benefit_weight: float = 0.5) -> Strategy:
    """Return EBPC with weight r of EB."""
    return Strategy(
        name=f"ebpc:{benefit_weight:g}",
        about=f"EB and PC together, EB with weight {benefit_weight:g} (000)",
        score=benefit_and_cost(benefit_weight),
    )


LOOK_AHEAD = Strategy(
    name="look-ahead",
    about="ours: EBPC that counts the waits downstream and drops what has little chance",
    score=benefit_and_cost(0.5),
    hopeless_at_crowded=LITTLE_CHANCE,
    postponed_by=2.0,
    counts_waits=True,
)
LATE_BINDING = Strategy(
    name="late-binding",
    about="ours: EBPC where the next hop is chosen only when a link falls free",
    score=benefit_and_cost(0.6),
    appraise=appraise_any_way,
    hopeless_at_crowded=LITTLE_CHANCE,
    postponed_by=2.0,
    counts_waits=True,
    any_way=True,
)

STRATEGIES = {strategy.name: strategy for strategy in (FIFO, RL, EB, PC, ebpc(0.5), LOOK_AHEAD, LATE_BINDING)}


def strategy_named(name: str) -> Strategy:
    """Return the strategy of this name; `ebpc:0.7` is EBPC with r = 0.7, and `ebpc` has 0.5.

    >>> strategy_named("ebpc").name, strategy_named("ebpc:0.7").name
    ('ebpc:0.5', 'ebpc:0.7')
    """
    head, colon, weight = name.partition(":")
    if head == "ebpc":
        try:
            return ebpc(float(weight) if colon else 0.5)
        except (ValueError, SettingError):
            problem = "what follows ebpc: must be a number between 0 and 1"
            raise SettingError("strategy", name, problem, "try ebpc:0.5") from None
    if name not in STRATEGIES:
        raise SettingError("strategy", name, "no such strategy", near_or_listed(name, STRATEGIES))
    return STRATEGIES[name]
