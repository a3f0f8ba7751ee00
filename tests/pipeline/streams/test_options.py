"""Is each option read as it is meant, and a mistake in one told by its name?"""

from __future__ import annotations

import pytest

from betimes.model.errors import BetimesError
from betimes.pipeline.streams.options import (
    PublishedSince,
    checked_topic,
    read_sink_options,
    read_source_options,
)

SOURCE = {"url": "mqtt://a", "topic": "traffic/#"}


def test_a_source_needs_a_broker_and_a_topic_and_has_sound_bounds():
    found = read_source_options(SOURCE)
    assert [str(each) for each in found.place.addresses] == ["mqtt://a:1883"]
    assert found.wanted.topic == "traffic/#"
    assert (found.messages_per_batch, found.partitions, found.takes_part) == (None, 1, False)
    assert (found.place.timeout_s, found.place.patience_s) == (10.0, 60.0)


def test_options_win_over_the_address_for_each_of_several_brokers():
    url = "mqtt://ben:other@a mqtts://b:8884"
    found = read_source_options(SOURCE | {"url": url, "user": "anna", "password": "secret", "CA": "ca.crt"})
    assert [(each.host, each.port, each.user, each.password) for each in found.place.addresses] == [
        ("a", 1883, "anna", "secret"),
        ("b", 8884, "anna", "secret"),
    ]
    assert found.place.ca == "ca.crt"


def test_where_to_start_is_a_word_or_numbers():
    assert read_source_options(SOURCE | {"starting": "earliest"}).starting == "earliest"
    assert read_source_options(SOURCE | {"starting": '{"b1": 7}'}).starting == {"b1": 7}


def test_a_sink_may_find_its_topic_in_a_column():
    assert read_sink_options({"url": "mqtt://a"}).topic is None
    found = read_sink_options({"url": "mqtt://a", "topic": "t", "deadline": "10s", "importance": "3"})
    assert (found.topic, found.deadline, found.importance) == ("t", "10s", 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "http://a"}, "address"),
        ({"url": " "}, "url"),
        ({"filter": "speed >"}, "speed >"),
        ({"topics": "t"}, "did you mean topic"),
        ({"partitions": "0"}, "partitions = '0'"),
        ({"messages_per_batch": "many"}, "messages_per_batch"),
        ({"starting": "yesterday"}, "earliest"),
        ({"starting": '{"b1": "x"}'}, "number for each broker"),
        ({"part": "perhaps"}, "refuse or accept"),
        ({"timeout": "soon"}, "timeout = 'soon'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss = 'maybe': must be true or false"),
        ({"startingTimestamp": "noon"}, "milliseconds of the Unix epoch"),
        ({"startingTimestamp": "7", "startingOffsets": "latest"}, "startingTimestamp = '7': and starting"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger"),
    ],
)
def test_a_mistake_is_told_by_its_name(wrong, said):
    with pytest.raises(BetimesError, match=said):
        read_source_options(SOURCE | wrong)


def test_options_have_the_names_that_kafkas_source_gives_them():
    found = read_source_options(
        SOURCE
        | {"startingOffsets": "earliest", "endingOffsets": '{"b1": 9}', "maxOffsetsPerTrigger": "7"}
        | {"minPartitions": "3", "failOnDataLoss": "FALSE", "minOffsetsPerTrigger": "5"}
        | {"maxTriggerDelay": "2s", "maxBytesPerTrigger": "1000", "messages_per_batch": "7"}
    )
    assert (found.starting, found.ending, found.messages_per_batch) == ("earliest", {"b1": 9}, 7)
    assert (found.partitions, found.fails_on_loss, found.batch_messages_min) == (3, False, 5)
    assert (found.trigger_delay_s_max, found.batch_bytes_max) == (2.0, 1000)
    assert read_source_options(SOURCE).fails_on_loss
    assert read_source_options(SOURCE | {"startingTimestamp": "1500"}).starting == PublishedSince(1_500_000)


@pytest.mark.parametrize(
    ("ours", "kafkas"),
    [
        ({"starting": "latest"}, {"startingOffsets": "earliest"}),
        ({"messages_per_batch": "5"}, {"maxOffsetsPerTrigger": "6"}),
        ({"partitions": "1"}, {"minPartitions": "2"}),
    ],
)
def test_two_names_of_one_option_with_different_values_are_an_error_that_names_both(ours, kafkas):
    with pytest.raises(BetimesError) as raised:
        read_source_options(SOURCE | ours | kafkas)
    assert all(name in str(raised.value) for name in (*ours, *kafkas))


def test_a_client_certificate_needs_its_files_and_an_encrypted_broker(tmp_path):
    found = read_source_options(SOURCE | {"cert": "me.crt", "key": "me.key"})
    assert (found.place.cert, found.place.key) == ("me.crt", "me.key")
    with pytest.raises(BetimesError, match=r"cert = .* is not encrypted"), found.place.reader() as reader:
        reader.begin(found.wanted)
    there = read_source_options({"url": "mqtts://127.0.0.1:1", "topic": "t", "cert": str(tmp_path / "no")})
    with pytest.raises(BetimesError, match="cannot be read with its key"), there.place.reader() as reader:
        reader.begin(there.wanted)


@pytest.mark.parametrize("missing", ["url", "topic"])
def test_what_is_missing_is_named(missing):
    with pytest.raises(BetimesError, match=f"{missing} = None"):
        read_source_options({name: text for name, text in SOURCE.items() if name != missing})


def test_topics_and_the_place_of_gaps_are_looked_at_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BetimesError, match="# must be the last level"):
        read_source_options(SOURCE | {"topic": "a/#/b"})
    with pytest.raises(BetimesError, match="is a file"):
        read_source_options(SOURCE | {"gaps": str(tmp_path / "file")})
    assert read_source_options(SOURCE | {"gaps": str(tmp_path)}).gaps == str(tmp_path)
    with pytest.raises(BetimesError, match="a/#"):
        read_sink_options({"url": "mqtt://a", "topic": "a/#"})
    assert checked_topic("a/b") == "a/b"
