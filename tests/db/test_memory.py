"""Champions of similar Problems are remembered: of the own project and of public ones, on the same kind of device."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Engine

from db.clock import now
from db.engine import write_session
from db.queues import JobKind
from db.repositories import events, memory
from db.repositories.work.jobs import payload
from db.tables.core import ProblemRow, Project
from db.views.work import ConfirmWork, Precedent, ProposeWork, Remembered
from evaluator.types import Candidate, Evaluation, Stage
from evolution.fingerprint import fingerprint, similarity
from evolution.tunables import read_tunables
from evolution.types import Run, RunConfig
from tests.db.world import World, from_list, passed, problem

SOFTMAX = "import torch\nclass Model(nn.Module):\n    def forward(self, x):\n        return torch.softmax(x * 2, -1)\n"
SCALED = SOFTMAX.replace("x * 2", "x * self.scale") + "def get_inputs():\n    return [torch.randn(4)]\n"
MATMUL = SOFTMAX.replace("torch.softmax(x * 2, -1)", "torch.matmul(x, x)")


def asked(world: World) -> Remembered | None:
    world.start(config=RunConfig(proposers=("model",), in_flight=1))
    job = world.take(JobKind.PROPOSE)
    with write_session(world.engine) as s:
        work = payload(s, job)
    assert isinstance(work, ProposeWork)
    return work.remembered


def test_the_champion_of_a_similar_problem_is_shown(engine: Engine) -> None:
    first = World(engine, propose=from_list("speed=2.0"), problem=problem(SCALED))
    first.start()
    first.drain()
    found = asked(World(engine, problem=problem(SOFTMAX)))
    assert found is not None
    assert (found.speedup, found.source) == (2.0, "speed=2.0")
    assert asked(World(engine, problem=problem(MATMUL))) is None


def test_other_projects_are_remembered_only_where_they_are_public(engine: Engine) -> None:
    with write_session(engine) as s:
        s.add(Project(id="other", name="other", created_at=now(s)))
    theirs = World(engine, propose=from_list("speed=2.0"), problem=problem(SCALED))
    theirs.start(project="other")
    theirs.drain()
    mine = World(engine, problem=problem(SOFTMAX))
    assert asked(mine) is None
    with write_session(engine) as s:
        s.query(ProblemRow).filter(ProblemRow.project_id == "other").update({"public": True})
    mine.problem = problem(SOFTMAX + "# again\n")
    assert asked(mine) is not None


TUNED = """CONFIG = {{'UNROLL': {unroll}, 'TILE': {tile}}}
TUNABLES = {{'UNROLL': [1, 4], 'TILE': [8, 16, 32]}}
"""


class Unrolled(World):
    """UNROLL = 4 is worth a fifth, TILE nothing to speak of."""

    def judge(self, c: Candidate) -> Evaluation:
        _, configuration = read_tunables(c.source)
        speed = (1.8 if configuration["UNROLL"] == 4 else 1.5) * (1 + float(configuration["TILE"]) / 10_000)
        return passed(self.problem, c, speed)

    def confirm(self, item: ConfirmWork) -> Evaluation:
        return replace(self.judge(item.candidate), stage=Stage.CONFIRM, evidence={"promote": False})


def taught_run(engine: Engine, source: str, project: str = "default") -> Run:
    sources = [TUNED.format(unroll=unroll, tile=tile) for unroll in (1, 4) for tile in (8, 16, 32)]
    world = Unrolled(engine, propose=from_list(*sources), problem=problem(source))
    run = world.start(config=RunConfig(proposers=("replay:x",), in_flight=6), project=project)
    world.drain()
    return world.run(run.id)


def told(engine: Engine, source: str) -> tuple[Precedent, ...]:
    world = World(engine, problem=problem(source))
    world.start(config=RunConfig(proposers=("model",), in_flight=1))
    job = world.take(JobKind.PROPOSE)
    with write_session(world.engine) as s:
        work = payload(s, job)
    assert isinstance(work, ProposeWork)
    return work.precedents


def test_what_a_run_learned_is_told_to_runs_of_similar_problems(engine: Engine) -> None:
    run = taught_run(engine, SCALED)
    with write_session(engine) as s:
        (line,) = memory.lessons_of(s, run.id)
        kinds = [event.kind for event in events.after(s, run.id, 0, limit=1000)]
    assert line.startswith("UNROLL = 4 ran 1.20 times")
    assert kinds[-2:] == ["run.learned", "run.ended"]
    (found,) = told(engine, SOFTMAX)
    assert (found.problem, found.lesson.tunable, found.lesson.value, found.lesson.pairs) == (
        "rmsnorm",
        "UNROLL",
        "4",
        3,
    )
    assert told(engine, MATMUL) == ()


def test_lessons_of_other_projects_are_told_only_where_their_problem_is_public(engine: Engine) -> None:
    with write_session(engine) as s:
        s.add(Project(id="other", name="other", created_at=now(s)))
    taught_run(engine, SCALED, project="other")
    assert told(engine, SOFTMAX) == ()
    with write_session(engine) as s:
        s.query(ProblemRow).filter(ProblemRow.project_id == "other").update({"public": True})
    assert len(told(engine, SOFTMAX + "# again\n")) == 1


def test_fingerprints_name_operations() -> None:
    assert fingerprint(SCALED) == fingerprint(SOFTMAX) == {"softmax"}
    assert fingerprint("class Model:\n    def forward(self, a, b):\n        return F.gelu(a @ b).mean(-1)\n") == {
        "gelu", "@", "mean",
    }  # fmt: skip
    assert similarity(frozenset("ab"), frozenset("bc")) == 1 / 3
    assert similarity(frozenset(), frozenset()) == 0.0
