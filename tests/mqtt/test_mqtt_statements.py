"""Has every normative statement of MQTT a test or a reason, and is the page that lists them up to date?"""

from __future__ import annotations

import ast

import pytest
from tests.mqtt.standard_5 import NOT_APPLICABLE, STATEMENTS
from tests.mqtt.standard_311 import STATEMENTS_311
from tests.mqtt.statements import PAGE, Proof, marks, page, problems, proofs


def test_all_statements_of_both_versions_are_listed():
    assert (len(STATEMENTS), len(STATEMENTS_311)) == (251, 141)


def test_every_statement_has_a_test_or_a_reason_and_every_marker_names_a_statement():
    assert problems(proofs()) == []


def test_the_page_of_statements_is_up_to_date():
    assert PAGE.read_text() == page(proofs()), "make statements"


def test_what_is_missing_or_unknown_is_found():
    found = proofs()
    found["mqtt"].pop("MQTT-3.12.4-1")
    found["mqtt311"].pop("MQTT-3.1.4-1")
    found["mqtt"]["MQTT-9.9.9-9"] = [Proof("tests/x.py", "x")]
    found["mqtt311"]["MQTT-9.9.9-8"] = [Proof("tests/y.py", "y")]
    idle = next(iter(NOT_APPLICABLE))
    found["mqtt"][idle] = [Proof("tests/z.py", "z")]
    assert problems(found) == [
        "MQTT 5 has no MQTT-9.9.9-9: tests/x.py",
        "3.1.1 has no MQTT-9.9.9-8: tests/y.py",
        f"{idle} has a test and a reason why it has none",
        "MQTT-3.12.4-1 has neither a test nor a reason",
        "MQTT-3.1.4-1 of 3.1.1 has neither a test, nor a reason, nor the same in MQTT 5",
    ]


@pytest.mark.parametrize(
    ("decorators", "found"),
    [
        ("@pytest.mark.mqtt('A', 'B')", [("mqtt", "A", "it"), ("mqtt", "B", "it")]),
        ("@pytest.mark.long\n@pytest.mark.mqtt311('C')", [("mqtt311", "C", "it")]),
        ("@pytest.mark.parametrize('x', [1])", []),
    ],
)
def test_markers_are_read_from_the_source(decorators, found):
    assert list(marks(ast.parse(f"{decorators}\ndef test_it(): ..."))) == found
