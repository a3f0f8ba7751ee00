"""Does the command publish what it is told to, and tell each mistake in one message?"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.cli.shells import COMMAND, WITHIN_S, listening, shell
from tests.cli.test_broker import started

from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.cli.app import run
from betimes.cli.pub import read_pairs
from betimes.model.errors import SettingError
from betimes.terminal.exit_codes import MISTAKE, UNAVAILABLE


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The port of one broker, whose tests keep to topics of their own."""
    with started("--anonymous") as (_, number):
        yield str(number)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-t", "t"], "there is no payload"),
        (["-t", "t", "-m", "x", "-n"], "more than one payload"),
        (["-m", "x"], "there is no topic"),
        (["-m", "x", "-t", "t", "-L", "mqtt://h/t"], "--url names a topic too"),
        (["-t", "t", "-f", "none"], "no such file"),
        (["-t", "t", "-m", "x", "--attribute", "speed"], "name=value"),
        (["-t", "t", "-m", "x", "-p", "70000"], "65535"),
        (["-t", "t", "-m", "x", "-L", "mqtt://h:x"], "port"),
        (["-t", "t", "-m", "x", "--cafile", "none"], "cannot be read"),
        (["-t", "t", "-m", "x", "-P", "x"], "needs a user name"),
        (["-t", "t", "-m", "x", "-q"], "requires an argument"),
        (["-t", "t", "-m", "x", "--bandwidth", "any"], "take\n  any\n  ^\nhint: write 15KB/s\n"),
        (["-t", "t", "-m", "x", "--bandwidth", ""], "says nothing"),
        (["-t", "a/#", "-m", "x"], "published to a pattern\nhint: + and # are for subscribers"),
        (["-t", "t", "-m", "x", "--deadline", "-1s"], "cannot be negative"),
        (["-t", "t", "-m", "x", "--importance", "-1"], "0 or more"),
        (["-t", "t", "-m", "x", "-q", "5"], "must be 0, 1 or 2\nhint: 1: at least once"),
    ],
)
def test_a_mistake_is_one_message(arguments, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("betimes.client.connection.Client.open", None)  # it is told before anybody is asked
    assert run(["pub", *arguments]) == MISTAKE
    out, err = capsys.readouterr()
    assert said in err
    assert (out, "Traceback" in err) == ("", False)


def test_attributes_are_pairs_and_stated_once():
    assert read_pairs(["speed=61", "note=a=b", "empty="]) == {"speed": "61", "note": "a=b", "empty": ""}
    for wrong in (["speed"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(SettingError, match="--attribute"):
            read_pairs(wrong)


@pytest.mark.long
def test_a_broker_that_is_not_there_has_a_code_of_its_own():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code, out, err = shell("pub", "-p", str(port), "-t", "t", "-m", "x")
    assert (code, out) == (UNAVAILABLE, b"")
    assert err.startswith(f"error: mqtt://127.0.0.1:{port}: cannot be reached")


@pytest.mark.live
def test_what_is_sent_arrives_from_wherever_it_comes(tmp_path, broker):
    (tmp_path / "file").write_bytes(b"in\0a file")
    to = ["-p", broker, "-t", "t", "-q", "1"]
    with listening("-p", broker, "-t", "t", "-q", "2", "-C", "7") as watching:
        assert shell("pub", *to, "-m", "text") == (0, b"", "")
        assert shell("pub", *to, "-f", str(tmp_path / "file"))[0] == 0
        assert shell("pub", *to, "-n")[0] == 0
        assert shell("pub", *to, "-s", stdin=b"all\nof it")[0] == 0
        assert shell("pub", *to, "-l", stdin=b"one\n\ntwo")[0] == 0
        out, _ = watching.communicate(timeout=WITHIN_S)
    payloads = [line.split(b" ", 3)[3] for line in out.replace(b"all\nof", b"all;of").splitlines()]
    assert payloads == [b"text", b"in\0a file", b"", b"all;of it", b"one", b"", b"two"]


@pytest.mark.live
def test_attributes_deadline_and_retain_reach_the_broker(broker):
    to = ["-p", broker, "-t", "cars", "-q", "1", "-r"]
    wish = ["-p", broker, "-t", "cars", "--filter", "speed > 50 AND kind = 'car'", "-C", "1", "-W"]
    options = ["--attribute", "speed=61", "--attribute", "kind=car", "--importance", "3"]
    assert shell("pub", *to, "-m", "fast", *options, "--deadline", "1h")[0] == 0
    assert shell("sub", *wish, "30s") == (0, b"fast\n", "")
    assert shell("pub", *to, "-m", "stale", *options, "--deadline", "0s")[0] == 0
    assert shell("sub", *wish, "1") == (27, b"", "")


@pytest.mark.live
def test_who_is_refused_is_told_why(tmp_path):
    users, access = tmp_path / "users", tmp_path / "access"
    users.write_text(PasswordFile().with_user("ann", b"secret", Cost(ln=4)).text())
    access.write_text("user ann\ntopic read open\n")
    with started("--passwords", str(users), "--access", str(access)) as (_, number):
        to = ["pub", "-p", str(number), "-t", "t", "-m", "x", "-u", "ann"]
        code, _, err = shell(*to, "-P", "wrong")
        assert (code, "unknown user or wrong password" in err) == (MISTAKE, True)
        code, _, err = shell(*to, "-P", "secret", "-q", "1")
        assert (code, "Not authorized" in err) == (MISTAKE, True)


@pytest.mark.live
def test_who_advertises_what_it_may_not_is_told_the_brokers_words(tmp_path):
    config = tmp_path / "broker.toml"
    config.write_text(
        'name = "b1"\n[network]\nsecret = "of brokers, long enough"\n[[network.links]]\nto = "b2"\n'
    )
    with started("--anonymous", str(config)) as (_, number):
        to = ["pub", "-p", str(number), "-t", "$betimes/x", "-m", "x"]
        code, out, err = shell(*to, "--bandwidth", "1KB/s")
        said = "topics that begin with $ are the brokers' own: ^$betimes/x (hint: advertise what you publish)"
        assert (code, out, err.count("\n")) == (MISTAKE, b"", 1)
        assert err.endswith(f"the broker refuses (0x83, Implementation specific error): {said}\n")


@pytest.mark.live
@pytest.mark.parametrize("ends", ["interrupted", "broker gone"])
def test_lines_go_out_as_they_come_and_whatever_ends_it_is_no_bug(ends):
    with (
        started("--anonymous") as (leaving, number),
        listening("-p", str(number), "-t", "t") as watching,
    ):
        command = [*COMMAND, "pub", "-p", str(number), "-t", "t", "-l", "-q", "1"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stderr=pipe) as sending:
            assert sending.stdin is not None
            assert watching.stdout is not None
            for text in (b"one", b"two"):
                sending.stdin.write(text + b"\n")
                sending.stdin.flush()
                assert watching.stdout.readline().endswith(text + b"\n")
            if ends == "interrupted":
                sending.send_signal(signal.SIGINT)
            else:
                leaving.kill()
                leaving.wait(WITHIN_S)
                sending.stdin.write(b"three\n")
                sending.stdin.flush()
            assert sending.stderr is not None
            err = sending.stderr.read().decode()
            assert sending.wait(WITHIN_S) == (130 if ends == "interrupted" else UNAVAILABLE)
            assert err == "interrupted\n" if ends == "interrupted" else "the connection broke" in err


@pytest.mark.live
def test_a_line_without_end_is_refused(broker):
    code, _, err = shell("pub", "-p", broker, "-t", "line", "-l", stdin=b"x" * (1 << 20) + b"xx")
    assert (code, "a line is longer" in err) == (MISTAKE, True)


def test_reading_ends_in_silence_when_the_command_ends_before_its_input():
    program = (
        "import asyncio, time\n"
        "from betimes.cli.pub import stdin_lines\n"
        "async def first():\n"
        "    async for line in stdin_lines():\n"
        "        return line\n"
        "print(asyncio.run(first()))\n"
        "time.sleep(0.3)\n"  # the thread meets a loop that is closed
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=b"line\n" * 1000,
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"b'line'\n", b"")
