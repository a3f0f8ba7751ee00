"""Does each strategy send first what its definition says (000, section 5)?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from betimes.kernels.types import Numbers
from betimes.model.errors import SettingError
from betimes.scheduling.appraisal import (
    BENEFIT,
    LIFETIME_S,
    POSTPONED,
    appraise_any_way,
    appraise_lifetime,
    best_candidate,
)
from betimes.scheduling.strategies import (
    EB,
    FIFO,
    HOPELESS_AT,
    LATE_BINDING,
    LITTLE_CHANCE,
    LOOK_AHEAD,
    PC,
    RL,
    STRATEGIES,
    Strategy,
    ebpc,
    strategy_named,
)

values = arrays(np.float64, st.shared(st.integers(1, 12), key="length"), elements=st.floats(0.0, 100.0))


@st.composite
def appraisals(draw: st.DrawFn) -> Numbers:
    """Return what an appraisal writes: the candidates, longest waiting first, and what each is worth."""
    benefit = draw(values)
    results = np.zeros((5, len(benefit)))
    results[BENEFIT], results[POSTPONED] = benefit, benefit * draw(st.floats(0.0, 1.0))
    results[LIFETIME_S] = draw(values)
    return results


def chosen(strategy: Strategy, results: Numbers) -> int:
    return best_candidate(results, results.shape[1], *strategy.score)


@given(appraisals())
def test_first_come_ranks_all_alike_so_that_the_first_goes(results):
    assert chosen(FIFO, results) == 0
    results[LIFETIME_S] = np.inf
    assert chosen(FIFO, results) == 0


@given(appraisals())
def test_least_lifetime_takes_what_expires_first(results):
    assert chosen(RL, results) == results[LIFETIME_S].argmin()


@given(appraisals())
def test_the_scores_are_equations_3_9_and_10(results):
    benefit, cost = results[BENEFIT], results[BENEFIT] - results[POSTPONED]
    assert chosen(EB, results) == benefit.argmax()
    assert chosen(PC, results) == cost.argmax()
    for weight in (0.0, 0.25, 1.0):
        score = weight * benefit + (1.0 - weight) * cost
        assert score[chosen(ebpc(weight), results)] == pytest.approx(score.max(), abs=1e-9)


def test_ebpc_with_all_weight_on_eb_is_eb_and_with_none_is_pc():
    assert ebpc(1.0).score == EB.score
    assert ebpc(0.0).score == PC.score


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_the_weight_of_eb_is_between_0_and_1(weight):
    with pytest.raises(SettingError, match="between 0 and 1"):
        ebpc(weight)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_is_found_by_its_name(name):
    assert strategy_named(name).name == name
    assert strategy_named(name).about


def test_ebpc_is_named_with_its_weight():
    assert strategy_named("ebpc:0.7").name == "ebpc:0.7"
    assert strategy_named("ebpc").name == "ebpc:0.5"
    assert strategy_named("ebpc:0").name == "ebpc:0"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fif", "did you mean fifo?"),
        ("late_binding", "did you mean late-binding?"),
        ("best", "one of fifo, rl"),
        ("ebpc:half", "ebpc:0.5"),
        ("ebpc:2", "between 0 and 1"),
        ("", "one of fifo"),
    ],
)
def test_an_unknown_strategy_gets_a_hint(name, hint):
    with pytest.raises(SettingError) as caught:
        strategy_named(name)
    assert hint in str(caught.value)


def test_fifo_and_rl_drop_only_what_has_expired_and_the_papers_others_by_rule_11():
    assert FIFO.appraise is RL.appraise is appraise_lifetime
    assert EB.hopeless_at == PC.hopeless_at == ebpc(0.3).hopeless_at == HOPELESS_AT == 0.0005


def test_the_papers_strategies_keep_to_one_path_and_know_no_waits():
    for strategy in (FIFO, RL, EB, PC, ebpc(0.5)):
        assert not strategy.any_way
        assert not strategy.counts_waits
        assert strategy.postponed_by == 1.0


def test_only_late_binding_takes_any_way():
    assert LATE_BINDING.appraise is appraise_any_way
    assert [each.name for each in STRATEGIES.values() if each.any_way] == ["late-binding"]
    assert LOOK_AHEAD.counts_waits
    assert LATE_BINDING.counts_waits


@given(st.floats(0.0, 1.0))
def test_our_strategies_give_up_more_the_more_crowded_it_is_and_the_papers_do_not(contention):
    for strategy in STRATEGIES.values():
        given_up_at = strategy.gives_up_at(contention)
        if strategy.counts_waits:
            assert HOPELESS_AT <= given_up_at <= LITTLE_CHANCE
        else:
            assert given_up_at == HOPELESS_AT
    assert LATE_BINDING.gives_up_at(0.0) == HOPELESS_AT
    assert LATE_BINDING.gives_up_at(1.0) == LITTLE_CHANCE


@pytest.mark.parametrize("name", ["ebpc:", "ebpc:2", "ebpc:nan", "ebpc:-1", "ebpc:x"])
def test_a_weight_that_is_none_is_refused_by_the_name_of_the_strategy(name):
    with pytest.raises(SettingError, match="between 0 and 1") as caught:
        strategy_named(name)
    assert caught.value.value == name
