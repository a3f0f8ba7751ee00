"""Does a refusal carry the facts, and read well?"""

from __future__ import annotations

import pickle

from betimes.client.errors import ConnectionLostError, SubscriptionRefusedError, UnreachableError


def test_a_refusal_names_what_the_code_and_the_brokers_own_words():
    refused = SubscriptionRefusedError("traffic/#", 0x87, "Not authorized", "not for you")
    assert str(refused) == "traffic/#: the broker refuses (0x87, Not authorized): not for you"
    assert str(SubscriptionRefusedError("t", 0x80, "Unspecified error")).endswith("(0x80, Unspecified error)")
    pointing = SubscriptionRefusedError("t", 0x83, "Implementation specific error", "bad\n  a >\n  ^")
    assert str(pointing).splitlines()[1:] == ["bad", "  a >", "  ^"]


def test_what_it_is_about_is_named_once():
    refused = SubscriptionRefusedError("cars", 0x97, "Quota exceeded", "cars: refused: no bandwidth")
    assert str(refused) == "cars: the broker refuses (0x97, Quota exceeded): no bandwidth"
    assert (refused.why, refused.reason) == ("no bandwidth", "cars: refused: no bandwidth")


def test_a_refusal_survives_the_way_to_another_process():
    refused = pickle.loads(pickle.dumps(SubscriptionRefusedError("t", 0x87, "Not authorized", "no")))
    assert (refused.what, refused.code, refused.reason) == ("t", 0x87, "no")


def test_a_refusal_says_whether_it_is_definite_also_in_another_process():
    refused = SubscriptionRefusedError(
        "t", 0x97, "Quota exceeded", "nobody publishes this", is_definite=False
    )
    assert not pickle.loads(pickle.dumps(refused)).is_definite
    assert SubscriptionRefusedError("t", 0x97, "Quota exceeded").is_definite


def test_a_lost_connection_is_a_broker_out_of_reach():
    assert issubclass(ConnectionLostError, UnreachableError)
