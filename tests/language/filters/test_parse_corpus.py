"""Texts with known results: the parser on top of sqlglot that Betimes once had wrote `parse_corpus.jsonl`.

A line has a text, and either its predicate and its number of boxes, or the position, problem and hint of its
error. A change of the language or of an error message changes lines there on purpose.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from betimes.language.filters.parse import parse_filter, parse_predicate
from betimes.model.errors import TextError

CORPUS = [
    json.loads(line) for line in Path(__file__).with_name("parse_corpus.jsonl").read_text().splitlines()
]
VALID = [known for known in CORPUS if "predicate" in known]
INVALID = [known for known in CORPUS if "problem" in known]


@pytest.mark.parametrize("known", VALID, ids=range(len(VALID)))
def test_a_known_filter_has_its_predicate_and_boxes(known):
    assert repr(parse_predicate(known["text"])) == known["predicate"]
    assert len(parse_filter(known["text"]).boxes) == known["boxes"]


@pytest.mark.parametrize("known", INVALID, ids=range(len(INVALID)))
def test_a_known_mistake_has_its_position_problem_and_hint(known):
    with pytest.raises(TextError) as caught:
        parse_filter(known["text"])
    found = caught.value
    assert (found.position, found.problem, found.hint) == (
        known["position"],
        known["problem"],
        known["hint"],
    )
