"""The memory that clients make a broker use, by account and in all, and its bounds.

Whatever a client can make the broker keep is charged to its account: sessions, subscriptions, messages that
are queued or in flight, retained messages, wills, topic aliases, incomplete packets, and what it does not
read. Clients without a user name share one account. What does not fit is refused with 0x97 (quota exceeded),
or lost with a reason. Publications of QoS 0 that go out at once are not charged. The last quarter of what a
broker keeps in all is for accounts that take little: a few large ones cannot lock out all others.

Sizes are estimates, measured in `tests/broker/delivery/test_memory_account.py` to be no less than what Python
takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mqtt5

    from betimes.broker.delivery.session import BrokerSubscription

SESSION_BYTES = 9_000
SUBSCRIPTION_BYTES = 1_200  # of a plain one, besides its letters
LEVEL_BYTES = 300  # of each level of a topic filter with wildcards, or of a retained topic
INDEX_BYTES = 6_000  # of the index of content filters of one topic filter
BOX_BYTES = 1_100  # of one box of a content filter in it
DELIVERY_BYTES = 350  # of one client's delivery of a message, and of the message itself
TEXT_BYTES = 100  # of a text, besides its letters
PROPERTY_BYTES = 160  # of a user property, besides its letters
NUMBER_BYTES = 100  # of a number in a set
LARGE_SHARE = 0.75  # of the memory of a broker, for accounts that are not small
SMALL_SHARE = 1.0 / 64.0  # a small account takes no more than that


class MemoryAccounts:
    """The memory of all accounts of a broker."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.large_bytes_max = int(LARGE_SHARE * bytes_max)
        self.small_bytes = int(SMALL_SHARE * bytes_max)
        self.taken_bytes = 0
        self._accounts: dict[str, UserMemory] = {}

    def of(self, account: str, bytes_max: int) -> UserMemory:
        """Return the memory of an account, which is bounded by so many bytes from now on."""
        memory = self._accounts.get(account)
        if memory is None:
            memory = self._accounts[account] = UserMemory(self, bytes_max)
        memory.bytes_max = bytes_max
        return memory

    def forget(self, accounts: Iterable[str]) -> None:
        """Forget accounts to which nothing is charged."""
        for account in accounts:
            if account in self._accounts and not self._accounts[account].taken_bytes:
                del self._accounts[account]


class UserMemory:
    """What one account takes; each call is O(1)."""

    __slots__ = ("_all", "bytes_max", "taken_bytes")

    def __init__(self, accounts: MemoryAccounts, bytes_max: int) -> None:
        self._all = accounts
        self.bytes_max = bytes_max
        self.taken_bytes = 0

    def fits(self, size: int) -> bool:
        """Tell whether so many bytes more are within the bounds."""
        accounts, taken = self._all, self.taken_bytes + size
        bytes_max = accounts.bytes_max if taken <= accounts.small_bytes else accounts.large_bytes_max
        return taken <= self.bytes_max and accounts.taken_bytes + size <= bytes_max

    def charge(self, size: int) -> None:
        """Count so many bytes more, which may be less than none."""
        self.taken_bytes += size
        self._all.taken_bytes += size

    @property
    def problem(self) -> str:
        """Return why something is refused, for its client."""
        if self._all.taken_bytes - self.taken_bytes > self._all.large_bytes_max - self.bytes_max:
            return f"the broker keeps no more than {self._all.bytes_max} bytes for all clients"
        return f"the broker keeps no more than {self.bytes_max} bytes for one account"


def unbounded() -> UserMemory:
    """Return an account without a bound, for what belongs to no user."""
    return MemoryAccounts(1 << 62).of("", 1 << 62)


def subscription_bytes(subscription: BrokerSubscription) -> int:
    """Return about how much memory a subscription takes."""
    pattern, options, have = subscription.pattern, subscription.options, subscription.have
    size = SUBSCRIPTION_BYTES + 2 * len(pattern) + len(subscription.group or "")
    if "+" in pattern or "#" in pattern:
        size += LEVEL_BYTES * (pattern.count("/") + 1)
    if options is not None:
        texts = sum(TEXT_BYTES + len(name) + len(value) for name, value in options.texts)
        size += INDEX_BYTES + BOX_BYTES * len(options.filter.boxes) + texts
    if have is not None:
        size += sum(TEXT_BYTES + NUMBER_BYTES * (1 + len(each.above)) for each in have.values())
    return size


def will_bytes(will: mqtt5.Will | None) -> int:
    """Return about how much memory a will takes."""
    if will is None:
        return 0
    pairs = sum(PROPERTY_BYTES + len(name) + len(value) for name, value in will.user_properties)
    rare = (will.payload, will.topic, will.content_type, will.response_topic, will.correlation_data)
    return pairs + sum(TEXT_BYTES + len(each) for each in rare if each)
