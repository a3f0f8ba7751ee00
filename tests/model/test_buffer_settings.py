"""Are the usual settings of a buffer what they are said to be?"""

from __future__ import annotations

from betimes.model.buffer_settings import BufferSettings, PartitionTerms


def test_one_partition_takes_everything_if_nothing_is_said():
    (partition,) = BufferSettings().partitions
    assert partition.takes_everything
    assert not PartitionTerms(pattern="a/#").takes_everything
