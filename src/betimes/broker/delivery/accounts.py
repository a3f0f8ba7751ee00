"""Accounts: what each user, group of users, or all anonymous clients together may use at this broker.

An account bounds sessions, subscriptions, publications, reserved bandwidth, prices and money. Money is the
price of what its clients are sent. Where an account spends more than it may, its prices are scaled down on
links, so that it pays no more and others get their turn; nothing is refused for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.model.account_settings import AccountSettings, Grants

ANONYMOUS = "anonymous clients"
REVIEW_EVERY_S = 2.0  # of spending; a change of prices is announced to the whole network
SCALE_MIN = 2.0**-20
SPENDING_MEMORY = 0.5  # weight of the earlier rate


class Account:
    """One account: its grants, and what its clients use of them."""

    __slots__ = (
        "_paid_before",
        "_spent_per_s",
        "grants",
        "name",
        "pace",
        "paid",
        "price_scale",
        "sessions",
        "subscriptions",
    )

    def __init__(self, name: str, grants: Grants) -> None:
        self.name = name
        self.grants = grants
        self.sessions = 0
        self.subscriptions = 0
        self.paid = 0.0  # the prices of all that was sent to its clients
        self.price_scale = 1.0  # by which its prices count on links; a power of two
        self.pace = _pace(grants)  # of all its publications together
        self._paid_before = 0.0
        self._spent_per_s = 0.0

    @property
    def spoken(self) -> str:
        """Return the account in a message to one of its own clients."""
        return f"the account of {self.name}"

    def change(self, grants: Grants) -> None:
        """Hold to other grants from now on; what is in use stays."""
        if grants != self.grants:
            self.grants, self.pace = grants, _pace(grants)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is left of it that a new account would not have."""
        return not self.sessions and not self.subscriptions and self.price_scale == 1.0

    def price_on_links(self, price: float) -> float:
        """Return what a price counts between brokers."""
        return min(price, self.grants.price_max) * self.price_scale

    def review(self, past_s: float) -> bool:
        """Scale prices by what was spent; tell whether the scale has changed.

        The scale falls at once and rises one step at a time, and only where there is room for the step, so
        that it does not go to and fro between two reviews.
        """
        rate = (self.paid - self._paid_before) / past_s
        self._paid_before = self.paid
        self._spent_per_s = SPENDING_MEMORY * self._spent_per_s + (1.0 - SPENDING_MEMORY) * rate
        money, spent = self.grants.money_per_s_max, self._spent_per_s
        fair = 1.0
        if spent > money:
            fair = max(2.0 ** math.floor(math.log2(money / spent)), SCALE_MIN) if money else SCALE_MIN
        before = self.price_scale
        if fair < before:
            self.price_scale = fair
        elif fair >= 2.0 * before:
            self.price_scale = 2.0 * before
        return self.price_scale != before


class Accounts:
    """The accounts of one broker, by user."""

    def __init__(self, settings: AccountSettings, *, has_users: bool) -> None:
        self._accounts: dict[str, Account] = {}
        self._reviewed_s: float | None = None
        self.change(settings, has_users=has_users)

    def change(self, settings: AccountSettings, *, has_users: bool) -> None:
        """Hold to other settings from now on; sessions then need their accounts anew."""
        self._settings = settings
        self._anonymous = settings.anonymous_grants(has_users=has_users)
        self._groups = {user: name for name, group in settings.groups.items() for user in group.members}

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def of(self, user: str | None) -> Account:
        """Return the account of a user; None stands for all clients that have proven no user name."""
        settings = self._settings
        if user is None:
            name, grants = ANONYMOUS, self._anonymous
        elif (group := self._groups.get(user)) is not None:
            name, grants = f"group {group}", settings.groups[group].grants
        else:
            name, grants = f"user {user}", settings.users.get(user, settings.default)
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name, grants)
        elif account.grants is not grants:
            account.change(grants)
        return account

    def review(self, now_s: float) -> list[Account]:
        """Return the accounts whose prices count for another amount from now on."""
        past_s = REVIEW_EVERY_S if self._reviewed_s is None else now_s - self._reviewed_s
        if past_s < REVIEW_EVERY_S:
            return []
        self._reviewed_s = now_s
        return [each for each in self._accounts.values() if each.review(past_s)]

    def take_idle(self) -> list[str]:
        """Forget the accounts that are out of use, and return their names. O(accounts)."""
        idle = [each.name for each in self._accounts.values() if each.is_idle]
        for name in idle:
            del self._accounts[name]
        return idle


def _pace(grants: Grants) -> TokenBucket | None:
    rate = grants.publications_per_s_max
    return TokenBucket(rate) if rate < math.inf else None
