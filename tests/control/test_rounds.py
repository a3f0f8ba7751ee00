"""Do live brokers promise what the control centre has learned that they can keep?"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.records import written

import betimes
from betimes.cli.app import run
from betimes.client.addresses import read_address
from betimes.client.errors import SubscriptionRefusedError, UnreachableError
from betimes.control.rounds import (
    Centre,
    Round,
    check_told,
    predict_and_tell,
    print_round,
    tell_brokers,
)
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics
from betimes.model.topology import Link
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.terminal.exit_codes import MISTAKE, UNAVAILABLE
from betimes.terminal.fleet import HOST, Fleet, FleetPlan, free_ports

SECRET = "a secret of the control centre"
RATE_KB_PER_S = 50.0  # so that a message of 2 KB is 40 ms under way
COUNT = 120


def plan(folder: Path) -> FleetPlan:
    secret = folder / "secret"
    secret.write_text(SECRET)
    return FleetPlan(
        ports=dict(zip(("a", "b"), free_ports(2), strict=True)),
        links=(Link(source="a", target="b", s_per_kb_mean=1.0 / RATE_KB_PER_S),),
        settings={"anonymous": True, "control_secret_file": str(secret)},
        options=(
            "--telemetry",
            str(folder / "telemetry"),
            "--telemetry-share",
            "1",
            "--telemetry-every",
            "1s",
        ),
    )


async def publish_and_hear(ports: dict[str, int]) -> None:
    """Let somebody at the far end want what is published at the near one."""
    async with (
        betimes.connect(f"mqtt://{HOST}:{ports['a']}?client_id=pub") as near,
        betimes.connect(f"mqtt://{HOST}:{ports['b']}?client_id=sub") as far,
        far.subscribe("news", max_delay="2s") as heard,
    ):
        await asyncio.sleep(1.0)  # until the other broker knows of it
        for _ in range(COUNT):
            await near.publish("news", b"x" * 2000, attributes={"level": 1})
            await asyncio.sleep(0.05)
        async for _ in heard:
            break
        await asyncio.sleep(2.5)  # until it is written down


async def ask(port: int, share: float, *, within: str) -> str:
    """Subscribe with a promise; return the refusal, or nothing."""
    async with betimes.connect(f"mqtt://{HOST}:{port}") as client:
        try:
            async with client.subscribe("news", max_delay=within, reliability=share):
                return ""
        except SubscriptionRefusedError as error:
            return str(error)


def done(*, told: int, problems: tuple[str, ...] = (), unreachable: int = 0) -> Round:
    """Return a round that learned of six brokers."""
    return Round(
        brokers=6, links=5, publishers=1, subscriptions=1, promised=0, predicted_share_mean=0.5, told=told,
        took_s=1.0, problems=problems, unreachable=unreachable,
    )  # fmt: skip


def control(folder: Path, ports: dict[str, int], *more: str) -> int:
    brokers = [f"mqtt://{HOST}:{port}" for port in ports.values()]
    places = ["--telemetry", str(folder / "telemetry"), "--tables", str(folder / "tables")]
    secret = [] if "--control-secret" in more else ["--control-secret", str(folder / "secret")]
    return run(["control", *brokers, *places, *secret, "--once", *more])


@pytest.mark.live
@pytest.mark.spark
def test_live_brokers_refuse_what_they_cannot_keep_and_promise_what_they_can(spark, tmp_path, capsys):
    network = plan(tmp_path)
    with Fleet(network):
        asyncio.run(asyncio.wait_for(publish_and_hear(dict(network.ports)), 60.0))
        assert control(tmp_path, dict(network.ports), "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["brokers"], facts["told"], facts["publishers"]) == (2, 2, 1)
        port = network.ports["b"]
        for _ in range(100):  # the model is worked out in a thread
            refused = asyncio.run(ask(port, 0.99, within="10ms"))
            if refused:
                break
        assert "predicted 0.0" in refused
        assert "of the 0.99 asked for" in refused
        assert asyncio.run(ask(port, 0.5, within="5s")) == ""
        known = learn_statistics(tmp_path / "tables")
        everybody = centre(tmp_path, network.ports.values(), "another secret altogether")
        told, _ = predict_and_tell(everybody, known, time.monotonic())
        assert (told.told, len(told.problems), told.unreachable) == (0, 2, 0)
        assert "Not authorized" in told.problems[0]
        one = replace(everybody, brokers=everybody.brokers[:1])
        told, _ = predict_and_tell(one, known, time.monotonic())
        print_round(told, as_json=False)
        with pytest.raises(BetimesError, match="1 of 1 brokers did not get the model"):
            check_told(told)
        said = " ".join(capsys.readouterr().err.split())
        assert "hint: the broker's control secret is missing, or differs from --control-secret" in said
        assert "the telemetry has 2 brokers, the command line 1 address" in said
    told, _ = predict_and_tell(everybody, known, time.monotonic())
    with pytest.raises(UnreachableError, match="2 of 2 brokers did not get the model"):
        check_told(told)


def centre(folder: Path, ports: Iterable[int], secret: str) -> Centre:
    """Return a control centre that has learned already."""
    brokers = [read_address(f"mqtt://{HOST}:{each}") for each in ports]
    return Centre(telemetry=folder / "telemetry", tables=folder / "tables", brokers=brokers, secret=secret)


@pytest.mark.long
def test_a_round_in_which_a_broker_was_not_told_ends_with_its_reason(tmp_path, capsys, monkeypatch):
    (tmp_path / "secret").write_text(SECRET)
    written(tmp_path / "telemetry", [])
    monkeypatch.setattr("betimes.cli.control.open_spark", lambda *_: None)
    for problems, unreachable, code in ((("away",), 1, UNAVAILABLE), (("refused",), 0, MISTAKE)):
        outcome = done(told=0, problems=problems, unreachable=unreachable)
        monkeypatch.setattr("betimes.control.rounds.one_round", lambda *_, outcome=outcome: outcome)
        assert control(tmp_path, {"a": 1883}) == code
        assert "1 of 1 brokers did not get the model" in capsys.readouterr().err


def test_brokers_that_cannot_be_reached_are_told_apart_from_those_that_refuse():
    [port] = free_ports(1)
    address = read_address(f"mqtt://{HOST}:{port}")
    nothing = NetworkStatistics(brokers=(), links=(), publishers=(), subscriptions=())
    [problem] = asyncio.run(tell_brokers(nothing, [address], SECRET, None)).values()
    assert isinstance(problem, UnreachableError)
    check_told(done(told=2))
    with pytest.raises(UnreachableError, match="1 of 3 brokers did not get the model"):
        check_told(done(told=2, problems=("away",), unreachable=1))
    with pytest.raises(BetimesError, match="2 of 2 brokers did not get the model") as caught:
        check_told(done(told=0, problems=("away", "refused"), unreachable=1))
    assert not isinstance(caught.value, UnreachableError)


def test_brokers_that_nobody_named_are_pointed_out(capsys):
    print_round(done(told=3, problems=("away",), unreachable=1), as_json=False)
    said = " ".join(capsys.readouterr().err.split())
    assert "the telemetry has 6 brokers, the command line 4 addresses" in said
    print_round(done(told=6), as_json=True)
    assert "get no model" not in capsys.readouterr().err


def test_brokers_without_telemetry_are_pointed_out(capsys):
    print_round(replace(done(told=6), writers=("a", "b")), as_json=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "names 6 addresses, but only a, b" in said
    assert "hint: start every broker with --telemetry" in said
    for writers in ((), tuple("abcdef")):
        print_round(replace(done(told=6), writers=writers), as_json=True)
        assert "telemetry" not in capsys.readouterr().err


@pytest.mark.long
def test_a_network_can_have_its_secret_made(tmp_path, capsys, monkeypatch):
    plans: list[FleetPlan] = []
    monkeypatch.setattr("betimes.cli.network.run_network", plans.append)
    topology = tmp_path / "t.toml"
    topology.write_text('[[brokers]]\nname = "a"\n')
    secret = tmp_path / "s"
    for _ in range(2):
        assert (
            run(["network", str(topology), "--anonymous", "--port", "0", "--control-secret", str(secret)])
            == 0
        )
    assert len(secret.read_text().strip()) == 32
    assert secret.stat().st_mode & 0o077 == 0
    assert {each.settings["control_secret_file"] for each in plans} == {str(secret)}
    secret.write_text("short")
    assert run(["network", str(topology), "--anonymous", "--control-secret", str(secret)]) == MISTAKE
    assert "the secret is too short" in capsys.readouterr().err
