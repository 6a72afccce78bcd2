"""Bundles: work as files that are lost, doubled, cut, late, foreign and forged, and settled once all the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, select

from db.engine import read_session, write_session
from db.errors import Conflict, NotFound
from db.queues import CONTROL, PROPOSE, JobKind, device_queue
from db.tables.core import CandidateRow, EvaluationRow, ProblemRow
from db.tables.queue import DeviceRow, JobRow
from db.transitions.runs import cancel_run
from db.transitions.work import jobs
from db.transitions.work.bundles import Collected, Taken, make_bundle, release_bundle, settle_answer
from db.views.work import BuildWork, ConfirmWork
from evaluator.batch.lines import Answer, BadLine, Task, TaskKind, answered, read_bundle, read_line, write_line
from evaluator.types import SCHEMA_VERSION, Candidate, Device, DeviceKind, Environment, Language, Problem, Verdict
from evolution.types import Budget, RunConfig
from tests.db.world import DEVICE, ENVIRONMENT, World, admission, baseline, from_list, passed, problem

pytestmark = pytest.mark.both_stacks(soak=True)

LEASE_S = 3600.0
OTHER_DRIVER = replace(ENVIRONMENT, driver="999.1")


@dataclass
class Batch:
    """Work of a world that a machine without a network does, and the service's clock."""

    world: World
    clock_s: float = 0.0
    outcomes: list[Collected] = field(default_factory=list)

    @property
    def engine(self) -> Engine:
        return self.world.engine

    def _now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.clock_s)

    def bundle(self, limit: int = 50) -> str | None:
        """Do what needs no device, and bundle what does."""
        while (job := self.world.claim(CONTROL, PROPOSE)) is not None:
            self.world.work(job)
        with write_session(self.engine) as s:
            s.info["now"] = self._now
            try:
                return make_bundle(s, DeviceKind.CPU, limit=limit, lease_s=LEASE_S).text
            except Conflict:
                return None

    def collect(self, text: str) -> list[Collected]:
        """Settle the answers in a text, each in a transaction of its own."""
        found = []
        for answer in answered(text.split("\n")):
            with write_session(self.engine) as s:
                s.info["now"] = self._now
                found.append(settle_answer(s, answer.bundle_id, answer)[0])
        self.outcomes += found
        return found

    def later(self, seconds: float) -> None:
        self.clock_s += seconds
        with write_session(self.engine) as s:
            s.info["now"] = self._now
            jobs.sweep(s)


def answer_to(world: World, bundle_id: str, task: Task, environment: Environment = ENVIRONMENT) -> Answer:
    """Return the machine's answer to a task."""
    parts: dict[str, Any] = {}
    c = task.candidate
    if task.kind is TaskKind.ADMIT:
        parts = {"admission": admission(task.problem), "baseline": baseline(task.problem)}
    elif task.kind is TaskKind.BASELINE:
        parts = {"baseline": baseline(task.problem)}
    elif task.kind is TaskKind.CONFIRM:
        work = ConfirmWork(
            evaluation_id="", candidate_id="", problem=task.problem, candidate=task.candidate,
            device_kind=DeviceKind.CPU, baseline=task.baseline, champion_id=None, champion=task.champion,
        )  # type: ignore[arg-type]  # fmt: skip
        parts = {"evaluation": world.confirm(work)}
    else:
        assert c is not None
        build = world.build(
            BuildWork(evaluation_id="", candidate_id="", problem=task.problem, candidate=c, device_kind=DeviceKind.CPU)
        )
        judged = world.judge(c) if build.evaluation is None else None
        if judged is not None and judged.environment is not None:
            judged = replace(judged, environment=environment)
        parts = {"build": build, "evaluation": judged} if task.kind is TaskKind.BUILD else {"evaluation": judged}
    return Answer(bundle_id=bundle_id, job_id=task.job_id, lease=task.lease, kind=task.kind, **parts)


def answers_to(world: World, bundle: str, environment: Environment = ENVIRONMENT) -> list[str]:
    header, tasks, faults = read_bundle(bundle)
    assert not faults
    return [write_line(answer_to(world, header.bundle_id, task, environment)) for task in tasks]


def archive(engine: Engine, ended: Problem | None = None) -> set[tuple[Any, ...]]:
    """Return the archived facts of the Candidates, of one Problem or of all."""
    with read_session(engine) as s:
        query = select(CandidateRow).join(ProblemRow, ProblemRow.id == CandidateRow.problem_id)
        rows = s.scalars(query if ended is None else query.where(ProblemRow.hash == ended.hash)).all()
        return {(row.hash, row.verdict, row.speedup, row.elite, row.confirmed) for row in rows}


def settled_once(engine: Engine) -> bool:
    """Every Evaluation is settled, and every Candidate was judged once and confirmed at most once."""
    with read_session(engine) as s:
        rows = s.execute(select(EvaluationRow.candidate_id, EvaluationRow.kind, EvaluationRow.state)).all()
        open_jobs = s.scalars(select(JobRow.id).where(JobRow.state.in_(("ready", "claimed")))).all()
    judged = [row for row in rows if row.kind == "judge"]
    return (
        not open_jobs
        and {row.state for row in rows} <= {"settled", "duplicate"}
        and len(judged) == len({row.candidate_id for row in judged})
    )


def sources(count: int) -> list[str]:
    rng = Random(5)
    failures = ("INCORRECT_VALUES", "BUILD_ERROR", "TIMEOUT")
    return [
        f"{rng.choice(failures)} # {n}" if rng.random() < 0.3 else f"speed={0.5 + n / 1000:.4f} # {n}"
        for n in range(count)
    ]


def start(world: World, count: int) -> None:
    config = RunConfig(proposers=("synthesiser",), in_flight=6, stagnation_candidates=10**6)
    world.start(Budget(candidates=count), config)


@pytest.mark.parametrize("count", [18, pytest.param(200, marks=(pytest.mark.soak, pytest.mark.timeout(600)))])
def test_candidates_over_bad_bundles_end_as_those_of_a_live_run(engine: Engine, count: int) -> None:
    made = sources(count)
    live = World(engine, propose=from_list(*made), problem=problem("class Model: live"))
    start(live, count)
    live.drain(20 * count)
    lived = archive(engine)
    world = World(engine, propose=from_list(*made), problem=problem("class Model: batch"))
    batch = Batch(world)
    start(world, count)
    rng, kept, fates = Random(3), list[str](), dict[str, int]()
    every = ("whole", "doubled", "lost", "truncated", "late", "driver", "forged")
    for number in range(400):
        bundle = batch.bundle(limit=rng.randint(2, 6))
        if bundle is None:
            break
        lines = answers_to(world, bundle)
        fate = every[number % len(every)]
        fates[fate] = fates.get(fate, 0) + 1
        match fate:
            case "whole":
                batch.collect("\n".join(lines))
            case "doubled":
                batch.collect("\n".join(lines + lines))
                kept += lines
            case "lost":
                release(batch, bundle)
            case "truncated":
                text = "\n".join(lines)
                batch.collect(text[: len(text) * 2 // 3])
                release(batch, bundle)
            case "late":
                batch.clock_s += LEASE_S + 1
                if rng.random() < 0.5:
                    batch.later(0.0)
                batch.collect("\n".join(lines))
            case "driver":
                batch.collect("\n".join(answers_to(world, bundle, OTHER_DRIVER)))
                release(batch, bundle)
            case "forged":
                batch.collect("\n".join(forged(line, rng) for line in lines))
                batch.collect("\n".join(lines))
        batch.collect("\n".join(kept[-20:]))
    assert set(fates) == set(every)
    assert settled_once(engine)
    batched = archive(engine, ended=world.problem)
    assert {row[:4] for row in batched} == {row[:4] for row in lived}
    assert len(batched) == count
    found = {one.outcome for one in batch.outcomes}
    assert found == set(Taken), found


def release(batch: Batch, bundle: str) -> int:
    header, _, _ = read_bundle(bundle)
    with write_session(batch.engine) as s:
        s.info["now"] = batch._now
        return release_bundle(s, header.bundle_id)[0]


def forged(line: str, rng: Random) -> str:
    """An answer with a guessed lease, about another kernel, or with a changed figure."""
    found = read_line(Answer, line)
    c = Candidate(source="speed=9", language=Language.CPP)
    match rng.randrange(3):
        case 0:
            return write_line(replace(found, lease="lease_01m8000000000000000000000"))
        case 1:
            better = passed(problem(), c, 9.0)
            return write_line(
                replace(found, kind=TaskKind.JUDGE, evaluation=better, admission=None, build=None, error="")
            )
        case _:
            return line.replace("0.5", "9.5")


def one_task(engine: Engine) -> tuple[Batch, str, Task]:
    """A bundle with the build of one Candidate."""
    world = World(engine, propose=from_list("speed=1.5"))
    world.start(Budget(candidates=1), RunConfig(in_flight=1))
    world.work(world.take(JobKind.ADMIT))
    baselines = world.claim(device_queue(DeviceKind.CPU))  # the build comes after the proposal
    assert baselines is not None
    world.work(baselines)
    batch = Batch(world)
    bundle = batch.bundle()
    assert bundle is not None
    _, (task,), _ = read_bundle(bundle)
    assert task.kind is TaskKind.BUILD
    return batch, bundle, task


@pytest.mark.both_stacks
def test_an_admission_goes_on_to_the_baselines_and_the_device_becomes_known(engine: Engine) -> None:
    world = World(engine, propose=from_list("speed=1.5"))
    world.start(Budget(candidates=1), RunConfig(in_flight=1))
    batch = Batch(world)
    bundle = batch.bundle()
    assert bundle is not None
    assert [one.outcome for one in batch.collect("\n".join(answers_to(world, bundle)))] == [Taken.SETTLED]
    following = batch.bundle()
    assert following is not None
    (task,) = read_bundle(following)[1]
    assert (task.kind, task.quick) == (TaskKind.BUILD, True), "what is clearly slower ends early, as with a worker"
    with read_session(engine) as s:
        assert s.scalars(select(DeviceRow.environment_key)).one() == ENVIRONMENT.key


def test_a_build_goes_on_to_its_judgement_and_twice_changes_nothing(engine: Engine) -> None:
    batch, bundle, _ = one_task(engine)
    text = "\n".join(answers_to(batch.world, bundle))
    assert [one.outcome for one in batch.collect(text)] == [Taken.SETTLED]
    assert [one.outcome for one in batch.collect(text)] == [Taken.GONE]
    with read_session(engine) as s:
        assert s.scalars(select(EvaluationRow.verdict)).all() == [Verdict.PASSED]


def test_a_late_answer_counts_while_nobody_else_has_the_work(engine: Engine) -> None:
    batch, bundle, _ = one_task(engine)
    text = "\n".join(answers_to(batch.world, bundle))
    batch.later(LEASE_S + 1)
    again = batch.bundle()
    assert again is not None
    assert [one.outcome for one in batch.collect(text)] == [Taken.GONE]
    batch.later(LEASE_S + 1)
    assert [one.outcome for one in batch.collect(text)] == [Taken.SETTLED]
    assert [one.outcome for one in batch.collect("\n".join(answers_to(batch.world, again)))] == [Taken.GONE]


@pytest.mark.parametrize(
    ("changes", "outcome", "words"),
    [
        pytest.param({"lease": "lease_guessed"}, Taken.REFUSED, "unknown lease", id="a guessed lease"),
        pytest.param(
            {"kind": TaskKind.JUDGE, "build": None}, Taken.REFUSED, "but the answer is for judge", id="another step"
        ),
        pytest.param(
            {"build": None, "evaluation": None, "error": "no space"}, Taken.RETURNED, "no space", id="a fault"
        ),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(
    engine: Engine, changes: dict[str, Any], outcome: Taken, words: str
) -> None:
    batch, bundle, task = one_task(engine)
    header, _, _ = read_bundle(bundle)
    answer = replace(answer_to(batch.world, header.bundle_id, task), **changes)
    (found,) = batch.collect(write_line(answer))
    assert (found.outcome, words in found.detail) == (outcome, True), found
    with read_session(engine) as s:
        assert s.scalars(select(EvaluationRow.state)).all() == ["building"]


def test_a_result_about_something_else_is_refused_and_the_true_one_still_counts(engine: Engine) -> None:
    batch, bundle, task = one_task(engine)
    header, _, _ = read_bundle(bundle)
    true = answer_to(batch.world, header.bundle_id, task)
    assert true.evaluation is not None
    other = replace(true, evaluation=replace(true.evaluation, candidate_hash="0" * 64))
    where = replace(true, evaluation=replace(true.evaluation, problem_hash="0" * 64))
    gpu = Device(kind=DeviceKind.CUDA, name="GPU", uuid="g")
    device = replace(true, evaluation=replace(true.evaluation, device=gpu))
    said = [batch.collect(write_line(one))[0] for one in (other, where, device, true)]
    assert [one.outcome for one in said] == [Taken.REFUSED] * 3 + [Taken.SETTLED]
    assert [one.detail for one in said[:3]] == [
        "it is about another candidate",
        "it is about another problem",
        "it comes from a device of another kind than cpu",
    ]


@pytest.mark.parametrize("other", ["device", "driver"])
def test_times_of_another_machine_go_back_without_counting_as_an_attempt(engine: Engine, other: str) -> None:
    batch, bundle, task = one_task(engine)
    header, _, _ = read_bundle(bundle)
    true = answer_to(batch.world, header.bundle_id, task)
    assert true.evaluation is not None
    change = {"device": replace(DEVICE, name="Other CPU")} if other == "device" else {"environment": OTHER_DRIVER}
    foreign = replace(true, evaluation=replace(true.evaluation, **change))  # type: ignore[arg-type]
    for _ in range(5):
        assert batch.collect(write_line(foreign))[0].outcome is Taken.RETURNED
    again = batch.bundle()
    assert again is not None
    assert batch.collect("\n".join(answers_to(batch.world, again)))[0].outcome is Taken.SETTLED


def test_a_cancelled_run_leaves_nothing_to_collect(engine: Engine) -> None:
    batch, bundle, _ = one_task(engine)
    with read_session(engine) as s:
        run_id = s.scalars(select(EvaluationRow.run_id)).one()
    with write_session(engine) as s:
        cancel_run(s, run_id)
    batch.later(LEASE_S + 1)
    assert batch.collect("\n".join(answers_to(batch.world, bundle)))[0].outcome is Taken.GONE


@pytest.mark.both_stacks
def test_what_is_given_back_after_its_run_was_cancelled_is_not_bundled_again(engine: Engine) -> None:
    batch, bundle, _ = one_task(engine)
    with write_session(engine) as s:
        cancel_run(s, s.scalars(select(EvaluationRow.run_id)).one())
    assert release(batch, bundle) == 1
    assert batch.bundle() is None
    with read_session(engine) as s:
        assert s.scalars(select(EvaluationRow.state)).all() == ["cancelled"]


def test_what_is_given_back_can_be_bundled_again_at_once(engine: Engine) -> None:
    batch, bundle, _ = one_task(engine)
    assert batch.bundle() is None
    for _ in range(4):
        assert release(batch, bundle) == 1
        assert release(batch, bundle) == 0
        again = batch.bundle()
        assert again is not None
        bundle = again
    with write_session(engine) as s, pytest.raises(NotFound):
        release_bundle(s, "bndl_unknown0000")


def test_a_changed_or_cut_line_is_none(engine: Engine) -> None:
    _, bundle, _ = one_task(engine)
    lines = bundle.strip().split("\n")
    assert read_bundle(lines[0])[2] == ["1 tasks are missing: the bundle was cut"]
    for changed in (lines[1][:-40], lines[1].replace("speed=1.5", "speed=9.5"), "[]", "{}", "null"):
        with pytest.raises(BadLine):
            read_line(Task, changed)
    with pytest.raises(BadLine, match="empty"):
        read_bundle("\n")
    header = replace(read_bundle(bundle)[0], schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(BadLine, match="same version"):
        read_bundle(write_line(header))
