"""Does a what-if question find the strategy in use, and show the effect of a change? (More: tests/cli.)"""

from __future__ import annotations

import pytest
from tests.pipeline.report_tables import make_tables

from betimes.pipeline.twin.what_if import CANDIDATES, TwinQuestion, ask, reliable_shares


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return make_tables(tmp_path_factory.mktemp("tables"))


def test_a_question_without_a_change_simulates_the_network_as_it_was(tables):
    steps: list[tuple[int, int]] = []
    answer = ask(tables, TwinQuestion(), CANDIDATES, 2, lambda done, total: steps.append((done, total)))
    assert answer.after is None
    assert answer.off_mean == pytest.approx(0.3)
    assert set(answer.fits) == set(CANDIDATES)
    assert steps[-1] == (len(CANDIDATES) + 2, len(CANDIDATES) + 2)


def test_a_named_strategy_is_not_fitted(tables):
    answer = ask(tables, TwinQuestion(times_faster=2.0), ["eb"], 1, lambda done, total: None)
    assert answer.strategy == "eb"
    assert answer.fits == {}
    assert answer.after is not None


def test_shares_of_few_messages_count_only_if_there_are_no_others():
    shares, wanted = {"ann": 0.5, "probe": 1.0}, {"ann": 40.0, "probe": 2.0}
    assert reliable_shares(shares, wanted) == {"ann": 0.5}
    assert reliable_shares({"probe": 1.0}, wanted) == {"probe": 1.0}
