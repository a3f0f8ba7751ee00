"""What users of a broker are granted: prices, money, bandwidth, sessions, subscriptions, publications."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

PRICE_MAX_USUAL = 100.0  # of a user without another grant
COUNT_UNBOUNDED = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The bounds of one account, which hold at each broker for all of the account's clients together."""

    price_max: float = PRICE_MAX_USUAL  # of one subscription
    # the prices of what is delivered; above it, the prices of the account count for less on links
    money_per_s_max: float = math.inf
    reserved_kb_per_s_max: float = math.inf  # of all its guarantees
    unused_s_max: float = math.inf  # after which a guarantee without messages lapses
    sessions_max: int = COUNT_UNBOUNDED
    subscriptions_max: int = COUNT_UNBOUNDED
    publications_per_s_max: float = math.inf
    memory_bytes_max: int | None = None  # of what the broker keeps for it; None: as the limits say


# Where no client can prove who it is, all clients are equal: their bounds keep them from locking up a link.
ONLY_ANONYMOUS = Grants(unused_s_max=300.0)
# Beside users, clients without a name get what users leave: a link sends their messages when no message of a
# user waits, whatever their number; and they reserve nothing.
BESIDE_USERS = Grants(
    price_max=0.01, money_per_s_max=1.0, reserved_kb_per_s_max=0.0, unused_s_max=300.0, sessions_max=5_000
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Users that share one account."""

    members: frozenset[str]
    grants: Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """The grants of all accounts of a broker."""

    anonymous: Grants | None = None  # clients without a user name, all together; None: see `anonymous_grants`
    default: Grants = field(default_factory=Grants)  # each user without an account of its own
    users: Mapping[str, Grants] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)

    def anonymous_grants(self, *, has_users: bool) -> Grants:
        """Return what clients without a user name have, at a broker that can tell users apart or not."""
        if self.anonymous is not None:
            return self.anonymous
        return BESIDE_USERS if has_users else ONLY_ANONYMOUS
