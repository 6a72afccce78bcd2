"""Endpoints that stall, drip, lie, refuse in bursts, break off, ramble and repeat themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.engine import make_engine, migrate
from evolution.types import Budget, EndReason
from tests.workers.torture import check, torture


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = make_engine(f"sqlite:///{tmp_path / 'torture.db'}")
    migrate(made)
    yield made
    made.dispose()


def test_a_run_outlives_its_endpoints_within_a_token_budget(engine: Engine) -> None:
    budget = Budget(tokens=24_000)
    figures = torture(engine, budget, seed=3, slow=0.01, stall_s=2.0, most_s=60.0)
    check(figures, budget)
    assert figures.run.end_reason in (EndReason.BUDGET, EndReason.NO_IMPROVEMENT)
    assert figures.run.spend.tokens > 18_000
    assert figures.steps["HTTP 429"] > 2


@pytest.mark.soak
def test_five_hundred_proposals(engine: Engine) -> None:
    budget = Budget(candidates=440, usd=25.0)
    figures = torture(engine, budget, seed=11, slow=0.05, stall_s=3.0, most_s=900.0)
    check(figures, budget)
    total = sum(figures.outcomes.values())
    print(
        f"{total} proposals, {sum(figures.steps.values())} calls in {figures.wall_s:.0f} s, slowest "
        f"{figures.slowest_s:.1f} s; {dict(figures.outcomes)}; {dict(figures.steps)}; {figures.run.spend}"
    )
    assert total >= 500
