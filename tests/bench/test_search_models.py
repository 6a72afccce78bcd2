"""Scripted models on a small artificial landscape: they fail and cost as configured, and choosing among them helps."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.search import models
from bench.search.landscape import Landscape, Proposer
from bench.search.models import Cost, best_alone
from bench.search.ours import CONFIRM_COST, Ours
from bench.search.scripted import (
    CLUMSY,
    DRAFTER,
    MIXTURES,
    NEAR,
    PASSED_S,
    REJECTED_S,
    STRONG,
    WEAK,
    Model,
    device_s,
    named,
    priced,
    proposer_of,
)
from evolution.arms import TUNER
from evolution.types import Operator


def replies(model: Model, land: Landscape, operator: Operator, times: int = 1000) -> dict[str, float]:
    """Return shares of a model's replies to a passed parent (to a slip, if it is to be repaired)."""
    proposer = proposer_of(model, land, Proposer(land, random.Random(1)))
    parent = land.kernels["m3" if operator is Operator.REPAIR else "321"]
    found = [model.reply(proposer, [parent], operator) for _ in range(times)]
    return {
        "unread": sum(kernel is None for kernel in found) / times,
        "slips": sum(kernel is not None and kernel.origin is not None for kernel in found) / times,
        "mended": sum(kernel is not None and kernel.hash == "300" for kernel in found) / times,
        "far": sum(kernel is not None and kernel.family == "f0" for kernel in found) / times,
    }


def test_a_model_fails_as_often_as_it_says(land: Landscape) -> None:
    for model in (STRONG, NEAR, WEAK):
        found = replies(model, land, Operator.REWRITE)
        assert found["unread"] == pytest.approx(model.malformed, abs=0.04)
        assert found["slips"] == pytest.approx((1 - model.malformed) * model.broken, abs=0.05)
    assert replies(CLUMSY, land, Operator.DIFF)["unread"] == pytest.approx(CLUMSY.undiffable, abs=0.04)
    assert replies(CLUMSY, land, Operator.REWRITE) == replies(NEAR, land, Operator.REWRITE)
    assert replies(STRONG, land, Operator.REPAIR)["mended"] > 4 * replies(WEAK, land, Operator.REPAIR)["mended"] > 0
    assert replies(DRAFTER, land, Operator.REWRITE)["far"] > 2 * replies(NEAR, land, Operator.REWRITE)["far"]


def test_a_run_costs_what_its_asks_and_judgements_cost(land: Landscape) -> None:
    assert STRONG.usd(Operator.CREATE) == pytest.approx((2100 * 3 + 1600 * 15) / 1e6)
    assert STRONG.usd(Operator.DIFF) < STRONG.usd(Operator.REWRITE)
    assert device_s(land.kernels["321"]) == PASSED_S
    assert device_s(land.kernels["m1"]) == REJECTED_S
    assert device_s(replace(land.kernels["m1"], verdict="BUILD_ERROR")) == 0.0
    run = Ours(land, 3, models=(STRONG, WEAK))
    run.run(500)
    price = {model.name: model for model in (STRONG, WEAK)}
    asks = [stats for stats in run.arms.values() if stats.arm != TUNER]
    assert run.usd == pytest.approx(sum(s.asked * price[s.arm.proposer].usd(s.arm.operator) for s in asks))
    assert {stats.arm.proposer for stats in asks} == {"strong", "weak"}
    judged_s = sum(stats.device_s for stats in run.arms.values())
    replies_s = sum(stats.propose_s for stats in asks)
    assert run.confirm_s % (CONFIRM_COST * PASSED_S) == pytest.approx(0)
    assert run.cost_s == pytest.approx(600 * run.usd + judged_s + 0.1 * replies_s + run.confirm_s)
    assert sum(stats.settled for stats in asks) > sum(stats.candidates for stats in asks), "some could not be read"


@pytest.mark.parametrize("off", ["", "models", "bandit"])
def test_a_run_of_several_models_is_the_same_again(land: Landscape, off: str) -> None:
    found = [Ours(land, 2, off, MIXTURES["half of them are weak"]) for _ in range(2)]
    assert found[0].run(2000) == found[1].run(2000) is not None
    assert found[0].arms == found[1].arms
    assert found[0].cost_s == found[1].cost_s > 0


def test_the_useful_model_is_chosen_and_in_turn_alternates(land: Landscape) -> None:
    useless = replace(WEAK, name="useless", malformed=1.0)
    asked = {"near": 0, "useless": 0}
    for seed in range(6):
        run, turn = (Ours(land, seed, off, (priced(useless, NEAR), NEAR)) for off in ("", "models"))
        for one in (run, turn):
            one.meter.within = -0.5  # never near enough: it goes on
            one.run(60)
        for stats in run.arms.values():
            if stats.arm != TUNER:
                asked[stats.arm.proposer] += stats.asked
        times = [sum(s.asked for s in turn.arms.values() if s.arm.proposer == name) for name in asked]
        assert abs(times[0] - times[1]) <= 1
    assert asked["near"] > 3 * asked["useless"]


def test_the_best_alone_is_the_cheapest_to_get_there() -> None:
    cheap, dear = Cost(40, 0.1, 100.0, True), Cost(10, 0.5, 310.0, True)
    assert best_alone({"dear": {("a", 0): dear}, "cheap": {("a", 0): cheap}}) == "cheap"


def test_every_mixture_is_compared_and_recorded(
    landscapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "found.json"
    small = {"two": (NEAR, WEAK), "alike": (NEAR, named(NEAR, "near-2"))}
    monkeypatch.setattr(models, "MIXTURES", small)
    monkeypatch.setenv("QUICK", "1")
    command = ["models", "--processes", "1", "--landscapes", str(landscapes), "--output", str(output)]
    monkeypatch.setattr("sys.argv", command)
    assert models.main() == 0
    printed = capsys.readouterr().out
    assert "1 landscapes, 2 seeds" in printed
    record = json.loads(output.read_text())
    assert record["mixtures"]["two"][0]["usd_out"] == NEAR.usd_out
    for name in small:
        rows = record["table"][name]
        assert list(rows) == ["ours", "models in turn", "bandit off", "the best alone"]
        assert rows["ours"]["over_ours"]["cost_s"]["ratio"] == 1.0
        assert rows["the best alone"]["model"] in {model.name for model in small[name]}
        assert f"{rows['bandit off']['cost_s']:.1f} s" in printed
        for row in rows.values():
            found = row["cost_s"] / rows["ours"]["cost_s"]
            assert row["over_ours"]["cost_s"]["ratio"] == pytest.approx(found, rel=2e-3)
