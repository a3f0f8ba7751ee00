"""Do simulations and commands say what was recorded, to twelve digits?"""

from __future__ import annotations

import pytest
from tests.golden.outcomes import OUTCOMES
from tests.golden.recording import check


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OUTCOMES))
def test_runs_come_out_as_was_recorded(name):
    check(name, OUTCOMES[name]())
