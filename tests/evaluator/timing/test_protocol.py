"""Results under different timing protocols are told apart."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from evaluator.schema import from_json, to_json
from evaluator.stages.judge import Judge
from evaluator.timing.protocol import STANDARD, IntegrityMargins, Promotion, SamplingPlan, TimingProtocol
from evaluator.types import Environment

ENVIRONMENT = Environment(python="3", torch="2")


def test_equal_protocols_have_one_hash_and_any_other_number_another() -> None:
    others = [
        TimingProtocol(judge=replace(STANDARD.judge, least_pairs=5)),
        TimingProtocol(promotion=Promotion(least_gain=0.02)),
        TimingProtocol(integrity=IntegrityMargins(single_calls=0.06)),
        TimingProtocol(brief_sampling=SamplingPlan(span_s=0.2)),
        TimingProtocol(process_pairs=9),
    ]
    hashes = {protocol.hash for protocol in [STANDARD, TimingProtocol(), *others]}
    assert len(hashes) == 1 + len(others)


def test_an_environment_tells_the_protocol() -> None:
    standard = replace(ENVIRONMENT, protocol=STANDARD.hash)
    assert standard.key != ENVIRONMENT.key
    assert standard.key != replace(ENVIRONMENT, protocol="other").key
    assert from_json(Environment, to_json(standard)) == standard


def test_a_judge_tells_the_protocol_that_it_times_by() -> None:
    judge = cast("Judge", SimpleNamespace(protocol=STANDARD, _versions=ENVIRONMENT))
    told = Judge.environment.fget(judge)  # type: ignore[attr-defined]
    assert told == replace(ENVIRONMENT, protocol=STANDARD.hash)


def test_a_confirmation_has_both_orders_of_every_size_and_never_races() -> None:
    rules = STANDARD.confirm
    assert rules.least_pairs == rules.most_pairs == 2 * len(STANDARD.round_sizes)
    assert not rules.racing
