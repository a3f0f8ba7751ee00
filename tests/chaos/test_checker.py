"""Does the checker find what is broken? Logs with one fault each."""

from __future__ import annotations

from collections import Counter

from tests.chaos.checker import Log, judge


def log(**fields: object) -> Log:
    found = Log(sent={"m1": 1, "m2": 2}, acknowledged={"m1", "m2"}, durable={"ben": 2})
    found.received["ben"] = Counter(["m1", "m2"])
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def only(found: Log) -> str:
    (violation,) = judge(found).violations
    return violation


def test_a_log_in_which_all_is_well_has_no_violation():
    verdict = judge(log())
    assert verdict.is_good
    assert "2 sent, 2 acknowledged, 2 deliveries" in str(verdict)


def test_a_lost_message_is_found_and_one_that_was_not_acknowledged_is_none():
    assert only(log(received={"ben": Counter(["m2"])})) == (
        "lost: ben did not get 1 acknowledged messages: m1"
    )
    assert judge(log(received={"ben": Counter(["m2"])}, acknowledged={"m2"})).is_good


def test_qos_2_comes_once_and_qos_1_may_come_twice():
    assert "doubled" in only(log(received={"ben": Counter(["m1", "m2", "m2"])}))
    twice = judge(log(received={"ben": Counter(["m1", "m1", "m2"])}))
    assert (twice.is_good, twice.repeated) == (True, 1)
    assert judge(log(received={"ben": Counter(["m1", "m2", "m2"])}, repeatable={"m2"})).is_good


def test_what_was_never_sent_is_found():
    assert "invented" in only(log(received={"ben": Counter(["m1", "m2", "m3"])}))


def test_a_lost_session_is_found():
    assert "session lost" in only(log(sessions_lost=["ben at b1"]))


def test_a_semi_durable_loss_must_be_told_as_a_gap():
    numbered = {"m1": {("b1", 7)}, "m2": {("b1", 8)}}
    found = log(semi_durable={"eve"}, numbered=numbered)
    found.received["eve"] = Counter(["m2"])
    assert "untold" in only(found)
    found.gaps["eve"] = [("b1", 5, 7)]
    assert judge(found).is_good
    found.numbered["m1"].add(("b2", 3))  # its publisher repeated it there
    assert "untold" in only(found)
    found.gaps["eve"].append(("b2", 1, 9))
    assert judge(found).is_good
    found.ids["eve"] = Counter({("b1", 8): 2})
    assert "resumes" in only(found)


def test_what_is_sent_after_all_has_healed_reaches_also_a_plain_subscriber():
    found = log(plain={"eve"}, calm={"m2"})
    found.received["eve"] = Counter(["m1"])
    assert "not served" in only(found)
    found.received["eve"]["m2"] += 1
    assert judge(found).is_good
