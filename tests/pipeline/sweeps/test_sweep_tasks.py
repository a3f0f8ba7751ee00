"""Does whatever a run does become an outcome?"""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import numpy as np
import pytest

from betimes.pipeline.sweeps.sweep import OUTCOME_SCHEMA, TaskOutcome, run_alone, run_here


@pytest.mark.parametrize("how", [run_here, run_alone])
def test_a_result_is_json_with_plain_numbers(how):
    outcome = how(lambda row: {"y": np.float64(2.5), "n": np.int64(3), "v": np.arange(2)}, 4, '{"x": 1}')
    assert outcome.row == 4
    assert outcome.result is not None
    assert json.loads(outcome.result) == {"y": 2.5, "n": 3, "v": [0, 1]}


@pytest.mark.parametrize("how", [run_here, run_alone])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(2), KeyboardInterrupt(), GeneratorExit()])
def test_every_exception_is_an_outcome(how, error):
    def run(row):
        raise error

    outcome = how(run, 0, "{}")
    assert outcome.result is None
    assert outcome.error == type(error).__name__
    assert outcome.message == str(error)


def test_an_error_without_a_message_is_still_reported():
    class SpeechlessError(Exception):
        def __str__(self):
            raise RuntimeError

    def run(row):
        raise SpeechlessError

    outcome = run_here(run, 0, "{}")
    assert outcome.error == "SpeechlessError"
    assert "cannot be had" in (outcome.message or "")


def test_a_process_that_dies_is_an_outcome():
    outcome = run_alone(lambda row: os._exit(9), 1, "{}")
    assert outcome.error == "ProcessDied"
    assert "code 9" in (outcome.message or "")


@pytest.mark.parametrize("result", [{"x": 2}, {"run_s": 1.0}])
def test_a_result_may_not_hide_a_parameter(result):
    outcome = run_here(lambda row: result, 0, '{"x": 1}')
    assert outcome.error == "ValueError"


def test_a_result_of_an_unknown_kind_is_a_failure():
    assert run_here(lambda row: {"y": object()}, 0, "{}").error == "TypeError"


def test_an_outcome_is_a_row_of_its_schema():
    outcome = TaskOutcome(row=3, result="{}")
    assert TaskOutcome(**asdict(outcome)) == outcome
    assert list(asdict(outcome)) == OUTCOME_SCHEMA.names
