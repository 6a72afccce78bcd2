"""The table of Proposers is complete, and a Proposer is one file and one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from db.views.work import ProposalResult
from evolution.arms import DISPATCH, ENUMERATORS, SEED, TUNER
from evolution.types import Arm, Operator, ProposalOutcome
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from tests.workers.work_items import FILE, propose_work
from workers import proposers
from workers.proposers import PROPOSERS, Proposers, Registered, registered_name
from workers.proposers.base import Request, candidate

ONE = ModelEndpoint(name="one", base_url="http://localhost:1/v1", model="m")


class Given:
    """Gives the same file each time, and how long it had."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def propose(self, request: Request) -> ProposalResult:
        return candidate(FILE, detail=f"{request.deadline.remaining_s:.0f} s")


def test_every_file_is_in_the_table_and_the_other_way_round() -> None:
    files = {path.stem for path in Path(proposers.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert files == set(PROPOSERS)
    for name, entry in PROPOSERS.items():
        made_in = proposers.__name__ if name == "model" else f"{proposers.__name__}.{name}"  # imported when it is asked
        assert entry.make.__module__ == made_in
        assert entry.deadline_s(Settings()) > 0


def test_every_arm_of_a_run_has_a_proposer() -> None:
    settings = Settings(models=(ONE,))
    arms = [SEED, TUNER, *(Arm(proposer=name, operator=Operator.CREATE) for name in (DISPATCH, *ENUMERATORS))]
    arms += [Arm(proposer=name, operator=Operator.CREATE) for name in settings.proposer_names]
    assert all(registered_name(arm, settings) in PROPOSERS for arm in arms)


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        ("replay:a.jsonl", "replay"),
        ("replay", None),
        ("synthesiser", "synthesiser"),
        ("synthesiser:x", None),
        ("one", "model"),
        ("model", "model"),
        ("external:alice", None),
        ("nothing", None),
    ],
)
def test_an_arm_names_its_proposer(arm: str, name: str | None) -> None:
    assert registered_name(Arm(proposer=arm, operator=Operator.CREATE), Settings(models=(ONE,))) == name


def test_without_endpoints_there_is_no_model() -> None:
    assert registered_name(Arm(proposer="model", operator=Operator.REWRITE), Settings()) is None
    answer = Proposers(Settings()).propose(propose_work("model"))
    assert answer.outcome is ProposalOutcome.EXHAUSTED
    assert f"there are: {', '.join(ENUMERATORS)}, seed, replay:NAME" in answer.detail


def test_a_new_one_is_one_line() -> None:
    table = {**PROPOSERS, "given": Registered(Given, lambda settings: 7.0)}
    answer = Proposers(Settings(), table).propose(propose_work("given"))
    assert answer.outcome is ProposalOutcome.CANDIDATE
    assert answer.detail == "7 s"
