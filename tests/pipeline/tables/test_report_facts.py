"""Are the sums of a report those of the tables' rows, each counted for what it stands for?"""

from __future__ import annotations

import numpy as np
import pytest
from tests.pipeline.report_tables import PASSAGE, make_empty_tables, make_tables, put_rows

from betimes.pipeline.tables import report_facts as module
from betimes.pipeline.tables.files import TablesError
from betimes.pipeline.tables.report_facts import DropFacts, report_facts
from betimes.pipeline.tables.shapes import WAITS


@pytest.fixture
def facts(tmp_path):
    return report_facts(make_tables(tmp_path) / "current")


def test_legs_are_means_of_waits_and_transfers(facts):
    first, second = facts.legs
    assert (first.origin, first.source, first.target, first.count) == ("a", "a", "b", 2.0)
    assert (first.wait_s_mean, first.transfer_s_mean) == (1.0, pytest.approx(0.4))
    assert (second.source, second.target, second.count) == ("b", "c", 2.0), "one row of a share of a half"
    assert (second.wait_s_mean, second.transfer_s_mean) == (1.0, pytest.approx(0.2))


def test_flows_are_what_came_from_one_broker_to_another(facts):
    to_b, to_c = facts.flows
    assert (to_b.origin, to_b.home, to_b.delivered) == ("a", "b", 2.0)
    assert (to_c.home, to_c.delivered) == ("c", 1.0)


def test_drops_count_every_subscriber_and_what_rows_stand_for(facts):
    assert facts.drops == (
        DropFacts(broker="a", reason="hopeless", count=4.0),
        DropFacts(broker="b", reason="expired", count=1.0),
    )


def test_a_queue_holds_what_has_come_and_was_not_sent(facts):
    at_a, at_b = facts.queues
    assert (at_a.broker, at_b.broker) == ("a", "b")
    assert at_a.seconds[0] == 0.0
    assert at_a.seconds[-1] == pytest.approx(4.0)
    waiting = np.interp([1.0, 3.0], at_a.seconds, at_a.waiting)
    assert waiting.tolist() == [0.0, 1.0], "the second message waits from second 2 to 4"
    assert at_b.waiting.max() == 2.0
    assert at_b.waiting[-1] == 0.0


@pytest.mark.long
def test_a_long_table_is_summed_up_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PARTS_MAX", 2)
    whole = report_facts(make_tables(tmp_path / "one") / "current")
    many = tmp_path / "many"
    make_tables(many)
    for number in range(5):  # the same rows in more files
        copy = many / "current" / WAITS.name / "source=a" / f"part-{number + 1}.parquet"
        copy.write_bytes((many / "current" / WAITS.name / "source=a" / "part-0.parquet").read_bytes())
    legs = report_facts(many / "current").legs
    assert legs[0].count == 6 * whole.legs[0].count
    assert legs[0].wait_s_mean == whole.legs[0].wait_s_mean


def test_of_nothing_there_is_nothing_to_draw(tmp_path):
    facts = report_facts(make_empty_tables(tmp_path) / "current")
    assert (facts.legs, facts.flows, facts.drops, facts.queues) == ((), (), (), ())


def test_a_message_of_which_the_arrival_is_unknown_makes_no_leg(tmp_path):
    folder = make_empty_tables(tmp_path) / "current"
    (folder / WAITS.name).rmdir()
    put_rows(folder, WAITS, [PASSAGE | {"time_s": 1.0, "wait_s": 0.0, "source": "a", "target": "b"}])
    assert report_facts(folder).legs == ()


def test_a_damaged_table_is_named(tmp_path):
    folder = make_tables(tmp_path) / "current"
    (folder / WAITS.name / "source=a" / "part-0.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(TablesError, match=r"waits/source=a/part-0\.parquet"):
        report_facts(folder)
