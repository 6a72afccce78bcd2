"""Prompts are stored in parts, and come back as they were."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, func, select

from db.engine import read_session, write_session
from db.repositories import proposals
from db.tables.texts import TextRow, load_text, store_text
from db.views.work import ProposeWork
from evolution.types import Budget
from tests.db.world import World, candidate_result

SAID = st.lists(st.sampled_from(["## A\n", "[system]\n", "\n", "x ## y", "é\n\n", "[user]", "## "])).map("".join)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=SAID)
def test_any_text_comes_back(engine: Engine, said: str) -> None:
    run = World(engine).start()
    with write_session(engine) as s:
        parts = store_text(s, run.id, said)
        assert store_text(s, run.id, said) == parts
        assert load_text(s, run.id, parts) == said


def test_what_prompts_share_is_stored_once(engine: Engine) -> None:
    shared = "[system]\nrules\n\n[user]\n## The reference\n" + "class Model: ...\n" * 50

    def propose(work: ProposeWork) -> object:
        return candidate_result(f"speed=0.{work.number}3", prompt=f"{shared}## Your task\n{work.number}", reply="r")

    world = World(engine, propose=propose)  # type: ignore[arg-type]
    run = world.start(Budget(candidates=5))
    world.drain()
    with read_session(engine) as s:
        found = [proposals.get(s, p.id) for p in proposals.list(s, run.id)]
        stored = s.scalars(select(func.count()).select_from(TextRow).where(TextRow.run_id == run.id)).one()
    assert {p.prompt for p in found if p.candidate_id} == {f"{shared}## Your task\n{n}" for n in range(5)}
    assert {p.reply for p in found if p.candidate_id} == {"r"}
    assert stored == 3 + 5 + 1
