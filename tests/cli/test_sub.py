"""Does the command print what comes at once, with id and age, and end as it should?"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.shells import COMMAND, WITHIN_S, listening, shell
from tests.cli.test_broker import started

from betimes.cli.app import run
from betimes.cli.sub import TIMED_OUT, Printer, facts, shown
from betimes.client.messages import Message
from betimes.terminal.exit_codes import MISTAKE, UNAVAILABLE
from betimes.terminal.resume_file import read_resume_file

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The port of one broker, whose tests keep to topics of their own."""
    with started("--anonymous", "--name", "b7") as (_, number):
        yield str(number)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-t", "a/#/b"], "# must be the last level"),
        (["-t", "t", "-t", "t"], "named twice"),
        ([], "there is no topic"),
        (["-t", "t", "--filter", "speed >> 5"], "^"),
        (["-t", "t", "--max-delay", "10 parsecs"], "unit"),
        (["-t", "t", "--price", "-1"], "0 or more\nhint: for example 3"),
        (["-t", "t", "--reliability", "2"], "between 0 and 1\nhint: for example 0.95"),
        (["-t", "t", "--bandwidth", "20"], "unit"),
        (["-t", "t", "--latency", "soon"], "begins with a number"),
        (["-t", "t", "-q", "3"], "0, 1 or 2"),
        (["-t", "t", "-C", "0"], "-C"),
        (["-t", "t", "-W", "0"], "more than 0\nhint: write 10 or 2m"),
        (["-t", "t", "-W", "soon"], "begins with a number"),
    ],
)
def test_a_mistake_is_one_message_before_anybody_is_asked(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr("betimes.client.connection.Client.open", None)
    assert run(["sub", *arguments]) == MISTAKE
    out, err = capsys.readouterr()
    assert said in err
    assert (out, "Traceback" in err) == ("", False)


def test_h_is_the_host_and_help_is_spelled_out(capsys):
    assert run(["sub", "--help"]) == 0
    said = capsys.readouterr().out
    assert "-h" in said
    assert run(["sub", "-h"]) == MISTAKE


def test_a_message_is_shown_with_id_and_age():
    message = Message(topic="t", payload=b"fast", attributes={"speed": 61.0}, id="b1:7", age_s=0.01234)
    assert shown(message) == b"t b1:7 12.3ms fast"
    assert shown(replace(message, age_s=5.0034e-05)) == b"t b1:7 50us fast", "one broker is fast"
    assert shown(Message(topic="t", payload=b"\xff")) == b"t - - \xff"
    assert facts(message) == {
        "topic": "t",
        "payload": "fast",
        "attributes": {"speed": 61.0},
        "id": "b1:7",
        "age_s": 0.01234,
        "qos": 0,
        "retain": False,
    }
    assert facts(Message(topic="t", payload=b"\xff"))["payload_base64"] == "/w=="


def test_no_more_is_printed_than_was_asked_for(capfdbinary):
    printer = Printer(count=2)
    for number in range(4):
        printer.print(Message(topic="t", payload=b"%d" % number))
    assert printer.is_done
    assert capfdbinary.readouterr().out == b"0\n1\n"


def test_each_line_comes_at_once_with_topic_id_and_age(broker):
    options = ["-t", "cars/#", "-t", "trams", "--filter", "speed > 50", "--max-delay", "10s", "--price", "3"]
    with listening("-p", broker, *options) as watching:
        for topic, speed in (("cars/a4", 40), ("cars/a4", 61), ("trams", 70)):
            sent = ["-t", topic, "-m", f"at {speed}", "--attribute", f"speed={speed}"]
            assert shell("pub", "-p", broker, *sent)[0] == 0
        assert watching.stdout is not None
        assert re.fullmatch(rb"cars/a4 b7:\d+ [\d.]+[mu]?s at 61\n", watching.stdout.readline())
        assert re.fullmatch(rb"trams b7:\d+ [\d.]+[mu]?s at 70\n", watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=WITHIN_S)
        assert (watching.returncode, out, err) == (130, b"", b"interrupted\n")


def test_json_is_one_object_to_a_line_and_a_count_ends_it(broker):
    to = ["-p", broker, "-t", "json"]
    assert shell("pub", *to, "-m", "kept", "-r", "-q", "1", "--attribute", "kind=car")[0] == 0
    code, out, err = shell("sub", *to, "--json", "-C", "1", "-W", "30")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["topic"], found["payload"], found["retain"]) == ("json", "kept", True)
    assert found["attributes"] == {"kind": "car"}
    assert found["id"].startswith("b7:")
    assert found["age_s"] >= 0


def test_the_time_is_over_with_mosquittos_code(broker):
    assert shell("sub", "-p", broker, "-t", "silence", "-W", "3s") == (TIMED_OUT, b"", "")


def test_who_never_answers_is_not_taken_for_silence():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = str(mute.getsockname()[1])
        code, _, said = shell("sub", "-p", port, "-t", "t", "-W", "1s")
    assert code == UNAVAILABLE
    assert "did not answer within 1s" in said


def test_a_broker_that_goes_away_is_told():
    with started("--anonymous") as (leaving, number), listening("-p", str(number), "-t", "t") as watching:
        leaving.send_signal(signal.SIGTERM)
        _, err = watching.communicate(timeout=WITHIN_S)
        assert watching.returncode == UNAVAILABLE
        assert err.startswith(b"error: mqtt://127.0.0.1:")
        assert b"Traceback" not in err


def test_a_reader_that_goes_away_is_no_bug(broker):
    to = ["-p", broker, "-t", "pipe"]
    assert shell("pub", *to, "-m", "kept", "-r", "-q", "1")[0] == 0
    command = [*COMMAND, "sub", *to]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == b"kept\n"
        watching.stdout.close()
        assert shell("pub", *to, "-m", "x")[0] == 0
        assert watching.stderr is not None
        err = watching.stderr.read()
        assert (watching.wait(WITHIN_S), err) == (141, b"")


def test_what_was_published_between_two_runs_is_printed_by_the_second_once(tmp_path, broker):
    file = str(tmp_path / "own.resume")
    options = ["-p", broker, "-t", "resumed", "--resume", file]
    with listening(*options, "-C", "1") as running:
        assert shell("pub", "-p", broker, "-t", "resumed", "-m", "one")[0] == 0
        out, _ = running.communicate(timeout=WITHIN_S)
        assert out.split()[-1] == b"one"
    for text in ("two", "three"):
        assert shell("pub", "-p", broker, "-t", "resumed", "-m", text)[0] == 0
    assert shell("sub", *options, "-C", "2")[:2] == (0, b"two\nthree\n")
    assert shell("sub", *options, "-W", "3")[:2] == (TIMED_OUT, b"")
    before = read_resume_file(Path(file))["resumed"]
    assert shell("sub", "-p", broker, "-t", "another", "--resume", file, "-W", "3")[0] == TIMED_OUT
    assert read_resume_file(Path(file))["resumed"] == before  # each topic has its own place


def test_what_the_broker_says_of_a_promise_is_told(broker):
    code, _, said = shell("sub", "-p", broker, "-t", "t", "--reliability", "0.9", "-W", "5")
    assert code == TIMED_OUT
    assert "t: the broker guarantees nothing" in said


def test_what_the_broker_says_of_a_guarantee_is_told(broker):
    code, _, said = shell("sub", "-p", broker, "-t", "t", "--bandwidth", "any", "-W", "5")
    assert code == TIMED_OUT
    assert "nothing to reserve" in said


def test_a_file_of_another_network_is_refused_with_a_way_out(tmp_path, broker):
    file = tmp_path / "own.resume"
    file.write_text('{"version": 1, "topics": {"t": ["elsewhere:5"]}}')
    code, _, said = shell("sub", "-p", broker, "-t", "t", "--resume", str(file))
    assert code == MISTAKE
    assert "no broker called elsewhere" in said
    assert "fresh start" in said


def test_another_broker_is_turned_to_when_the_first_is_away(broker):
    shell("pub", "-p", broker, "-t", "also", "-m", "here", "-r", "-q", "1")
    code, out, _ = shell(
        "sub", "-p", "1", "--also", f"mqtt://127.0.0.1:{broker}", "-t", "also", "-C", "1", "-W", "20"
    )
    assert (code, out) == (0, b"here\n")
