"""Is Spark opened where the user said?"""

from __future__ import annotations

import pytest

from betimes.model.errors import BetimesError
from betimes.terminal.spark_options import open_spark


@pytest.mark.spark
def test_spark_is_opened_with_a_notice(spark, capsys):
    assert open_spark("test").sparkContext is spark.sparkContext
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "starting Spark ...\n")


def test_a_master_and_a_remote_are_one_too_many():
    with pytest.raises(BetimesError, match="cannot be combined"):
        open_spark("test", "local", "sc://somewhere")
