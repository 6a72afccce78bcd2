"""`python -m db.replay FILE`: replay a recorded Run in an empty database, and compare every decision.

No model, judge or device is asked: each answer is the recorded one, at its recorded place in the order of events. The
search decides anew, with the recorded times as its clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from db.clock import now
from db.engine import make_engine, migrate, write_session
from db.ids import new_id
from db.queues import JobKind
from db.recording import BadRecording, Recording, read_recording
from db.repositories import runs
from db.repositories.work.jobs import job_of
from db.tables.core import CandidateRow, EvaluationRow, EventRow, ProposalRow
from db.tables.queue import JobRow
from db.transitions.advance import advance
from db.transitions.extend import extend_run
from db.transitions.problems import create_problem
from db.transitions.runs import cancel_run, create_run, pause_run, resume_run
from db.transitions.work import settle
from db.transitions.work.enqueue import enqueue_advance
from db.transitions.work.locks import lock_run
from db.views.rows import Job
from db.views.work import ProposalResult
from evaluator.schema import from_json
from evaluator.types import Admission, BaselineReport, BuildReport, DeviceKind, Evaluation, Language, Problem
from evolution.types import Budget, Fault, ProposalOutcome, Run, RunConfig


@dataclass(slots=True)
class ReplayResult:
    """The outcome of a replay. `differences` is empty where every decision came out as recorded."""

    run_id: str = ""
    decisions: int = 0
    differences: list[str] = field(default_factory=list)


def replay(engine: Engine, data: bytes, *, project_id: str = "default") -> ReplayResult:
    """Replay an archive in a migrated database that has no Run of this Problem. Raise BadRecording."""
    recording = read_recording(data)
    if recording.run["warm"] is not None or recording.run["run"]["config"]["seed_candidates"]:
        raise BadRecording("this run began with candidates of other runs, which its archive does not hold")
    player = _Player(engine, recording, project_id)
    for event in recording.lines["events"]:
        player.play(event)
        if player.found.differences:
            break
    return player.found


class _Player:
    """Walk the recorded events and check that each one happens again."""

    def __init__(self, engine: Engine, recording: Recording, project_id: str) -> None:
        self.engine, self.recording, self.project_id = engine, recording, project_id
        self.found = ReplayResult()
        self.proposals = {line["id"]: line for line in recording.lines["proposals"]}
        self.candidates = {line["id"]: line for line in recording.lines["candidates"]}
        self.evaluations = {line["id"]: line for line in recording.lines["evaluations"]}
        self.device = DeviceKind(recording.run["run"]["device_kind"])
        self.late = _answers_after_an_end(recording.lines["events"])
        self.held: dict[tuple[JobKind, str | None], Job] = {}

    def play(self, event: Mapping[str, Any]) -> None:
        """Cause this event again."""
        do = getattr(self, "_" + event["kind"].replace(".", "_"), None)
        if do is None:
            return
        with write_session(self.engine) as s:
            moment = datetime.fromisoformat(event["created_at"])
            s.info["now"] = lambda: moment
            try:
                for answer in self.late.get(event["seq"], ()):
                    kind, subject = self._asked(s, answer)
                    self.held[kind, subject] = self._job(s, kind, subject)
                do(s, event["data"])
            except LookupError as missing:
                self.found.differences.append(f"event {event['seq']} ({event['kind']}): {missing}")

    def _run_created(self, s: Session, data: Mapping[str, Any]) -> None:
        problem = create_problem(s, self.project_id, from_json(Problem, self.recording.run["problem"]))
        config = from_json(RunConfig, self.recording.run["run"]["config"])
        budget = from_json(Budget, data["budget"])
        run, _ = create_run(s, self.project_id, problem.id, self.device, budget, config)
        self.found.run_id = run.id

    def _problem_admitted(self, s: Session, data: Mapping[str, Any]) -> None:
        job = self._job(s, JobKind.ADMIT, None)
        settle.settle_admission(s, job, from_json(Admission, self.recording.run["admission"]))

    def _problem_refused(self, s: Session, data: Mapping[str, Any]) -> None:
        self._problem_admitted(s, data)

    def _run_status(self, s: Session, data: Mapping[str, Any]) -> None:
        """Pause or resume the Run. It starts by itself."""
        if data["status"] == "paused":
            pause_run(s, self.found.run_id)
        elif data["status"] == "running":
            resume_run(s, self.found.run_id)

    def _baseline_timed(self, s: Session, data: Mapping[str, Any]) -> None:
        """Settle the Baselines as they were then: the recording has the last report, the event the times by mode.

        Events of early recordings have the fastest modes alone.
        """
        last = from_json(BaselineReport, self.recording.run["baseline"])
        alike = {time.workload: time for time in last.times}
        times = tuple(
            replace(alike[name], mode=mode, median_us=median_us)
            for name, best in data["fastest"].items()
            for mode, median_us in data.get("times_us", {}).get(name, {best["mode"]: best["median_us"]}).items()
        )
        report = replace(last, times=times, pending=tuple(data.get("pending", ())))
        settle.settle_baseline(s, self._job(s, JobKind.BASELINE, None), report)

    def _run_extended(self, s: Session, data: Mapping[str, Any]) -> None:
        extend_run(s, self.found.run_id, _more(s, self.found.run_id, data), target_speedup=data["target_speedup"])

    def _run_ended(self, s: Session, data: Mapping[str, Any]) -> None:
        if data["status"] == "cancelled":
            cancel_run(s, self.found.run_id)

    def _search_decided(self, s: Session, data: Mapping[str, Any]) -> None:
        enqueue_advance(s, lock_run(s, self.found.run_id))  # where two were in flight at once, one is still here
        advance(s, self._job(s, JobKind.ADVANCE, self.found.run_id))
        s.flush()
        here = s.scalars(
            select(EventRow.data)
            .where(EventRow.run_id == self.found.run_id, EventRow.kind == "search.decided")
            .order_by(EventRow.seq.desc())
            .limit(1)
        ).one_or_none()
        if here != data:
            said = "nothing" if here is None or here["number"] != data["number"] else here["decisions"]
            raise LookupError(f"decision {data['number']} was {data['decisions']}, and is {said}")
        self.found.decisions += 1

    def _proposal_settled(self, s: Session, data: Mapping[str, Any]) -> None:
        told = self.proposals[data["proposal_id"]]
        if told["arm"]["proposer"].startswith("external"):
            raise LookupError("a candidate was injected here, which a replay does not repeat")
        job = self._job(s, JobKind.PROPOSE, self._proposal(s, told["number"]))
        settle.settle_proposal(s, job, self._answer(told, data))

    def _answer(self, told: Mapping[str, Any], data: Mapping[str, Any]) -> ProposalResult:
        made = data["outcome"] in (ProposalOutcome.CANDIDATE, ProposalOutcome.DUPLICATE)
        candidate = self.candidates.get(told["candidate_id"] or "") if made else None
        return ProposalResult(
            outcome=ProposalOutcome.CANDIDATE if candidate else ProposalOutcome(data["outcome"]),
            source=candidate["source"] if candidate else None,
            language=Language(candidate["language"]) if candidate else None,
            detail=told["detail"],
            fault=Fault(told["fault"]) if told.get("fault") and not candidate else None,
            model=told["arm"]["model"],
            **{
                key: told[key] for key in ("prompt", "prompt_template", "reply", "input_tokens", "output_tokens", "usd")
            },
            duration_s=told["duration_s"],
        )

    def _candidate_built(self, s: Session, data: Mapping[str, Any]) -> None:
        told = self.candidates[data["candidate_id"]]
        job = self._job(s, JobKind.BUILD, self._evaluation(s, told["number"]))
        settle.settle_build(s, job, from_json(BuildReport, told["build"]))

    def _candidate_duplicate(self, s: Session, data: Mapping[str, Any]) -> None:
        self._candidate_built(s, data)

    def _evaluation_settled(self, s: Session, data: Mapping[str, Any]) -> None:
        told = self.evaluations[data["evaluation_id"]]
        kind, subject = self._judged(s, data)
        job = self._job(s, kind, subject)
        if kind is JobKind.BUILD:
            settle.settle_build(s, job, from_json(BuildReport, self.candidates[data["candidate_id"]]["build"]))
        else:
            settle.settle_judge(s, job, from_json(Evaluation, told["evaluation"]))

    def _judged(self, s: Session, data: Mapping[str, Any]) -> tuple[JobKind, str]:
        told = self.evaluations[data["evaluation_id"]]
        kind = JobKind.CONFIRM if told["kind"] == "confirm" else JobKind.JUDGE
        kind = JobKind.BUILD if data["stage"] in ("screen", "build") else kind
        return kind, self._evaluation(s, data["number"], told["ordinal"])

    def _asked(self, s: Session, answer: Mapping[str, Any]) -> tuple[JobKind, str]:
        """Return the Job that an answer settles, by its kind and subject."""
        data = answer["data"]
        match answer["kind"]:
            case "proposal.settled":
                return JobKind.PROPOSE, self._proposal(s, self.proposals[data["proposal_id"]]["number"])
            case "evaluation.settled":
                return self._judged(s, data)
        return JobKind.BUILD, self._evaluation(s, self.candidates[data["candidate_id"]]["number"])

    def _proposal(self, s: Session, number: int) -> str:
        query = select(ProposalRow.id).where(ProposalRow.run_id == self.found.run_id, ProposalRow.number == number)
        found = s.scalars(query).one_or_none()
        if found is None:
            raise LookupError(f"proposal {number} was not made")
        return found

    def _evaluation(self, s: Session, number: int, ordinal: int = 1) -> str:
        query = (
            select(EvaluationRow.id)
            .join(CandidateRow, CandidateRow.id == EvaluationRow.candidate_id)
            .where(CandidateRow.run_id == self.found.run_id, CandidateRow.number == number)
            .where(EvaluationRow.ordinal == ordinal)
        )
        found = s.scalars(query).one_or_none()
        if found is None:
            raise LookupError(f"candidate {number} is not judged for the {ordinal}. time")
        return found

    def _job(self, s: Session, kind: JobKind, subject_id: str | None) -> Job:
        """Claim the ready Job of this kind and subject, out of turn; or return the one that is held already."""
        if (held := self.held.pop((kind, subject_id), None)) is not None:
            return held
        query = select(JobRow).where(JobRow.kind == kind, JobRow.state == "ready")
        row = s.scalars(query if subject_id is None else query.where(JobRow.subject_id == subject_id)).first()
        if row is None:
            raise LookupError(f"there is no {kind} to be done")
        row.state, row.lease, row.attempts = "claimed", new_id("lease"), row.attempts + 1
        row.lease_until = now(s) + timedelta(hours=1)
        s.flush()
        return job_of(row, row.lease)


def _answers_after_an_end(events: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """Return the answers that came after an end of the Run, by the event that caused the end.

    A worker held their Jobs by then: an end closes all others.
    """
    found: dict[int, list[Mapping[str, Any]]] = {}
    cause, before = None, 0
    for event in events:
        match event["kind"]:
            case "run.learned":  # told by the end itself
                continue
            case "run.ended":
                cause = event["seq"] if event["data"]["status"] == "cancelled" else before
            case "run.extended":
                cause = None
            case "proposal.settled" | "candidate.built" | "candidate.duplicate" | "evaluation.settled" if cause:
                found.setdefault(cause, []).append(event)
        before = event["seq"]
    return found


def _more(s: Session, run_id: str, data: Mapping[str, Any]) -> Budget:
    had: Run = runs.get(s, run_id)
    names = ("candidates", "tokens", "usd", "device_s", "wall_s")
    more = {n: data["budget"][n] - (getattr(had.budget, n) or 0) for n in names if data["budget"][n] is not None}
    return Budget(**{name: value for name, value in more.items() if value > 0})


def replay_archive(data: bytes) -> ReplayResult:
    """Replay an archive in a temporary database. Raise BadRecording."""
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        engine = make_engine(f"sqlite:///{Path(folder) / 'replay.db'}")
        try:
            migrate(engine)
            return replay(engine, data)
        finally:
            engine.dispose()


def print_result(found: ReplayResult) -> int:
    """Print the outcome of a replay. Exit status 0: as recorded; 1: not."""
    for difference in found.differences:
        print(difference)
    print(f"{found.decisions} decisions as recorded" + (", then another one" if found.differences else ""))
    return 1 if found.differences else 0


def main(arguments: list[str] | None = None) -> int:
    """Exit with 0 where the replay matches the recording, 1 where it differs, 2 for no recording."""
    parser = argparse.ArgumentParser(prog="python -m db.replay", description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    try:
        found = replay_archive(options.file.read_bytes())
    except OSError as error:
        print(f"{options.file}: {error.strerror or error}", file=sys.stderr)
        return 2
    except BadRecording as error:
        print(error, file=sys.stderr)
        return 2
    return print_result(found)


if __name__ == "__main__":
    sys.exit(main())
