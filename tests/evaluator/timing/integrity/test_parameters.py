"""Parameters after timed rounds: those that were loaded, unless the reference moves them, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from evaluator.child.protocol.layout import TensorSpec
from evaluator.devices.base import RoundPlan
from evaluator.errors import Rejection
from evaluator.subject import NamedTensor, StateNames, Subject
from evaluator.timing.contender import Contender
from evaluator.timing.integrity.parameters import Parameters
from evaluator.types import Verdict
from tests.evaluator.timing.integrity.sessions import timed_session

PLAN = RoundPlan(calls=4)


def check(
    loaded: dict[str, torch.Tensor], now: dict[str, torch.Tensor], reference: dict[str, torch.Tensor], **how: Any
) -> None:
    """Check a Candidate that calls the reference's `loaded` parameters "own.NAME"."""
    claims = {name: TensorSpec.of(value).to_json() for name, value in now.items()}
    names = StateNames(tuple(NamedTensor(f"own.{name}", claims[name]) for name in now), ())
    places = {id(claims[name]): now[name] for name in now}
    subject = SimpleNamespace(
        describe_state=lambda: names,
        child=None,
        backend=SimpleNamespace(fetch=lambda child, asked: [places[id(claim)] for claim in asked]),
    )
    rounds = SimpleNamespace(
        oracle=SimpleNamespace(parameters=loaded, current_parameters=lambda: reference),
        verifier=SimpleNamespace(label="a held-out workload" if how.get("held_out") else "small"),
        workload=SimpleNamespace(held_out=how.get("held_out", False)),
    )
    own = {f"own.{name}": value for name, value in loaded.items()}
    contender = Contender(
        "candidate", cast("Subject", subject), True, {}, parameters=own, sampled=how.get("sampled", False)
    )
    Parameters().run(timed_session(rounds, [contender], PLAN, lambda over, under: []))


@pytest.fixture
def loaded() -> dict[str, torch.Tensor]:
    return {"gain": torch.ones(4), "scale": torch.full((2, 3), 2.0)}


def test_parameters_that_stay_are_no_fault(loaded: dict[str, torch.Tensor]) -> None:
    check(loaded, {name: value.clone() for name, value in loaded.items()}, loaded)


@pytest.mark.parametrize("held_out", [False, True])
def test_a_parameter_that_timed_calls_change_is_named_unless_it_would_tell_of_held_out_sizes(
    loaded: dict[str, torch.Tensor], held_out: bool
) -> None:
    with pytest.raises(Rejection) as found:
        check(loaded, {**loaded, "scale": loaded["scale"] / 2}, loaded, held_out=held_out)
    assert found.value.verdict is Verdict.INCORRECT_VALUES
    assert found.value.evidence["check"] == "parameters"
    assert ("own.scale" in found.value.reason) is not held_out


def test_the_reference_may_change_it_too(loaded: dict[str, torch.Tensor]) -> None:
    moved = {**loaded, "scale": loaded["scale"] / 2}
    check(loaded, moved, moved)


def test_a_second_process_is_not_asked(loaded: dict[str, torch.Tensor]) -> None:
    check(loaded, {**loaded, "gain": loaded["gain"] + 1}, loaded, sampled=True)
