"""Champions of similar Problems are remembered: of the own project and of public ones, on the same kind of device."""

from __future__ import annotations

from sqlalchemy import Engine

from db.clock import now
from db.engine import write_session
from db.queues import JobKind
from db.repositories.jobs import payload
from db.tables import ProblemRow, Project
from db.work import ProposeWork, Remembered
from evolution.fingerprint import fingerprint, likeness
from evolution.types import RunConfig
from tests.db.world import World, from_list, problem

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


def test_fingerprints_name_operations() -> None:
    assert fingerprint(SCALED) == fingerprint(SOFTMAX) == {"softmax"}
    assert fingerprint("class Model:\n    def forward(self, a, b):\n        return F.gelu(a @ b).mean(-1)\n") == {
        "gelu", "@", "mean",
    }  # fmt: skip
    assert likeness(frozenset("ab"), frozenset("bc")) == 1 / 3
    assert likeness(frozenset(), frozenset()) == 0.0
