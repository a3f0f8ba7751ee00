"""Does an account bound what its clients use, and do others notice nothing of one that wants too much?"""

from __future__ import annotations

import math

import mqtt5
import pytest
from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import PasswordFile
from betimes.broker.delivery.accounts import REVIEW_EVERY_S, SCALE_MIN, Account, Accounts
from betimes.model.account_settings import AccountSettings, Grants, Group

QUOTA_EXCEEDED = 0x97


class TrustingAccess(AccessControl):
    """Access control that believes each client its user name."""

    def admits(self, _user: str | None, _password: bytes | None) -> bool | None:
        return True


def trusting(**accounts: object) -> TrustingAccess:
    settings = AccountSettings(**accounts)  # type: ignore[arg-type]
    return TrustingAccess(anonymous=True, passwords=PasswordFile(), accounts=settings)


def ann(**grants: object) -> TrustingAccess:
    return trusting(users={"ann": Grants(**grants)})  # type: ignore[arg-type]


def test_a_price_above_the_granted_one_is_refused_with_the_granted_one():
    client = Client(new_hub(access_control=ann(price_max=5.0)), username="ann")
    suback = client.subscribe("t", properties={"price": "6"})
    assert suback.reason_codes[0].value == QUOTA_EXCEEDED
    assert suback.reason_str == "a price of 6: the account of user ann allows 5 at most"
    assert client.subscribe("t", properties={"price": "5"}).reason_codes[0].value == 0


@pytest.mark.parametrize("properties", [{"max-delay": "1s"}, {"price": "1"}, {}])
def test_the_usual_price_is_granted_whatever_the_account(properties):
    client = Client(new_hub(access_control=ann(price_max=0.5)), username="ann")
    assert client.subscribe("t", properties=properties).reason_codes[0].value == 0
    assert client.subscribe("t", properties={"price": "1.1"}).reason_codes[0].value == QUOTA_EXCEEDED


def test_subscriptions_of_an_account_are_counted_over_its_sessions_until_they_are_gone():
    hub = new_hub(access_control=ann(subscriptions_max=2))
    one, two = (Client(hub, name, username="ann") for name in ("c1", "c2"))
    assert one.subscribe("a", "b").reason_codes[1].value == 0
    refused = two.subscribe("c")
    assert refused.reason_codes[0].value == QUOTA_EXCEEDED
    assert refused.reason_str == "the account of user ann has 2 subscriptions, which is all it may have"
    assert one.subscribe("a").reason_codes[0].value == 0, "it replaces one that is there"
    one.ask(mqtt5.UnsubscribePacket(2, ["a"]))
    assert two.subscribe("c").reason_codes[0].value == 0
    assert Client(hub, "c3").subscribe("a", "b", "c").reason_codes[2].value == 0, "of another account"


def test_sessions_of_an_account_are_counted_and_a_session_that_ends_makes_room():
    hub = new_hub(access_control=ann(sessions_max=1))
    first = Client(hub, "c1", username="ann")
    refused = Client(hub, "c2", username="ann")
    assert refused.connack.reason_code.value == QUOTA_EXCEEDED
    assert "has 1 sessions" in refused.connack.reason_str
    assert Client(hub, "c3", username="bob").connack.reason_code.value == 0
    first.send(mqtt5.DisconnectPacket())
    assert Client(hub, "c2", username="ann").connack.reason_code.value == 0
    assert hub.account_of("ann").sessions == 1


def test_the_publish_rate_of_an_account_holds_for_its_clients_together():
    hub = new_hub(access_control=ann(publications_per_s_max=10.0))
    one, two = (Client(hub, name, username="ann") for name in ("c1", "c2"))
    for _ in range(10):
        one.publish("t")
    assert one.connection.flow.pause_s == 0.0
    two.publish("t")
    assert two.connection.flow.pause_s == pytest.approx(0.1)
    other = Client(hub, "c3", username="bob")
    other.publish("t")
    assert other.connection.flow.pause_s == 0.0


def test_members_of_a_group_share_its_account():
    accounts = Accounts(
        AccountSettings(groups={"trucks": Group(members=frozenset({"t1", "t2"}), grants=Grants())}),
        has_users=True,
    )
    assert accounts.of("t1") is accounts.of("t2")
    assert accounts.of("t1").name == "group trucks"
    assert accounts.of("ann") is not accounts.of("bob")
    assert accounts.of(None) is accounts.of(None)


def test_anonymous_clients_beside_users_are_harmless_by_default_and_equal_where_there_are_none():
    beside = Accounts(AccountSettings(), has_users=True).of(None).grants
    assert (beside.price_max, beside.reserved_kb_per_s_max) == (0.01, 0.0)
    alone = Accounts(AccountSettings(), has_users=False).of(None).grants
    assert (alone.price_max, alone.reserved_kb_per_s_max) == (100.0, math.inf)
    granted = AccountSettings(anonymous=Grants(price_max=3.0))
    assert Accounts(granted, has_users=True).of(None).grants.price_max == 3.0


def test_new_settings_hold_for_accounts_in_use_and_move_sessions_to_their_groups():
    hub = new_hub(access_control=ann(price_max=5.0))
    client = Client(hub, username="ann")
    client.subscribe("a")
    hub.change_access_control(
        trusting(groups={"g": Group(members=frozenset({"ann"}), grants=Grants(price_max=7.0))}), 1.0
    )
    # The password file of the test names no user, so that ann is cut off; what counts is where she was.
    assert hub.account_of("ann").name == "group g"
    assert hub.account_of("ann").grants.price_max == 7.0


def test_an_account_that_spends_too_much_has_its_prices_scaled_and_recovers():
    account = Account("user ann", Grants(money_per_s_max=10.0))
    seconds = 0.0
    for _ in range(10):
        account.paid += 80.0 * REVIEW_EVERY_S
        account.review(REVIEW_EVERY_S)
        seconds += REVIEW_EVERY_S
    assert account.price_scale == pytest.approx(1 / 8)
    assert account.price_on_links(4.0) == pytest.approx(0.5)
    for _ in range(10):
        account.paid += 5.0 * REVIEW_EVERY_S
        account.review(REVIEW_EVERY_S)
    assert account.price_scale == 1.0


def test_an_account_without_money_pays_next_to_nothing():
    account = Account("user ann", Grants(money_per_s_max=0.0))
    assert not account.review(1.0), "it has spent nothing yet"
    account.paid += 1.0
    account.review(1.0)
    assert account.price_scale == SCALE_MIN


def test_what_is_sent_is_paid_by_the_account_of_its_receiver():
    hub = new_hub(access_control=ann())
    subscriber, publisher = Client(hub, "c1", username="ann"), Client(hub, "c2")
    subscriber.subscribe("a", properties={"price": "3"})
    subscriber.subscribe("b", qos=1)
    publisher.publish("a")
    publisher.publish("b", qos=1)
    publisher.publish("c")
    assert hub.account_of("ann").paid == 4.0
    assert hub.account_of(None).paid == 0.0


def test_accounts_out_of_use_are_forgotten():
    accounts = Accounts(AccountSettings(), has_users=True)
    for number in range(100):
        accounts.of(f"user {number}")
    used = accounts.of("ann")
    used.sessions += 1
    assert len(accounts.take_idle()) == 100
    assert list(accounts) == [used]


def test_memory_is_granted_by_account():
    hub = new_hub(access_control=ann(memory_bytes_max=30_000))
    assert Client(hub, "c1", username="ann").connack.reason_code.value == 0
    others = [Client(hub, f"c{number}", username="ann").connack.reason_code.value for number in range(2, 9)]
    assert QUOTA_EXCEEDED in others
    assert Client(hub, "other", username="bob").connack.reason_code.value == 0


def flooded_shares(*, flood: bool, access: AccessControl, user: str | None) -> tuple[int, int]:
    """Return what a subscriber with a bound of 1 s gets over a link of 20 KB/s, of what it wants."""
    net = Net(access_control=access)
    for name in ("a", "b"):
        net.start(name)
    net.join("a", "b", s_per_kb=0.05, rate_kb_per_s=20.0)
    net.run(1.0)
    paying = net.client("b", "paying", username=user)
    assert paying.subscribe("alerts", properties={"max-delay": "1s", "price": "3"}).reason_codes[0].value == 0
    if flood:
        greedy = net.client("b", "greedy")
        code = greedy.subscribe("flood", properties={"max-delay": "1s", "price": "1000000"}).reason_codes[0]
        if code.value:
            assert greedy.subscribe("flood", properties={"max-delay": "1s"}).reason_codes[0].value == 0
    net.run(1.0)
    publisher = net.client("a", "publisher")
    for _ in range(60):
        publisher.now_s = net.now_s
        publisher.publish("alerts", b"." * 1000)
        for _ in range(30 if flood else 0):
            publisher.publish("flood", b"." * 1000)
        net.run(0.25)
    net.run(2.0)
    return len([topic for topic, _ in paying.got() if topic == "alerts"]), 60


@pytest.mark.long
def test_a_flood_of_an_anonymous_client_takes_nothing_from_a_user():
    """Before accounts, a flood at price 1e6 left 1 of 60 messages to a user that paid 3."""
    alone, wanted = flooded_shares(flood=False, access=ann(), user="ann")
    beside, _ = flooded_shares(flood=True, access=ann(), user="ann")
    assert alone == wanted
    assert beside >= alone - 1
