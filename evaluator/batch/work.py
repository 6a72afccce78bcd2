"""Do the work of a bundle on this machine, which needs no network, database or service.

Each answer is written as soon as it is there: a job that a scheduler ends loses the task in progress alone, and the
same command goes on where it ended.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from evaluator.batch.lines import Answer, BadLine, Header, Task, TaskKind, answered, read_bundle, write_line
from evaluator.batch.served import JudgeFault, ServedJudge
from evaluator.schema import SchemaError, from_json, to_json
from evaluator.types import (
    Admission,
    BaselineReport,
    BuildReport,
    Device,
    Environment,
    Evaluation,
    Verdict,
)

DEADLINES_S = {"describe": 300.0, "admit": 600.0, "baseline": 1800.0, "build": 300.0, "judge": 900.0, "confirm": 1800.0}
"""Longer than a service's: here nobody waits for an answer, and compilers find cold caches."""
MOST_FAULTS = 3
_OK, _INCOMPLETE, _USAGE, _INTERNAL, _INTERRUPTED = 0, 1, 2, 3, 130

T = TypeVar("T")


class Asked(Protocol):
    """Answer requests, as a served judge does."""

    def request(self, op: str, *, deadline_s: float, **payload: Any) -> Any: ...

    def close(self) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Machine:
    """The device and the versions of this machine."""

    device: Device
    environment: Environment

    def misfit(self, task: Task) -> str:
        """Return the reason why this machine cannot do a task, "" if it can."""
        if task.baseline is None:
            return ""
        theirs = task.baseline.device.name, task.baseline.environment
        if self.device.name != theirs[0]:
            return f"the baselines were timed on {theirs[0]}, and this is {self.device.name}"
        if self.environment.key == theirs[1].key:
            return ""
        ours, other = to_json(self.environment), to_json(theirs[1])
        changed = [f"{name} {other[name]}, here {ours[name]}" for name in ours if ours[name] != other[name]]
        return f"the baselines were timed with other versions: {', '.join(changed)}"


def work(
    bundle: Path,
    results: Path,
    device: str,
    *,
    seconds: float | None = None,
    judges: int = 1,
    command: Sequence[str] = (),
) -> int:
    """Do what a bundle asks for and is not answered in `results` yet.

    No task begins after `seconds`. With several `judges` one compiles and checks while another one times: the device's
    lock keeps all else away from what is timed. `command` is a judge's, by default this Python's.
    Exit status: 0 all is answered; 1 some is left; 2 no bundle; 3 the judge fails; 130 Ctrl-C.
    """
    try:
        header, tasks, faults = read_bundle(bundle.read_text(encoding="utf-8"))
        have = {answer.job_id for answer in answered(_lines(results)) if answer.bundle_id == header.bundle_id}
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return _USAGE
    except (UnicodeDecodeError, BadLine) as error:
        print(f"error: {bundle}: {error}", file=sys.stderr)
        return _USAGE
    for fault in faults:
        print(f"{bundle}: {fault}", file=sys.stderr)
    todo = [task for task in tasks if task.job_id not in have]
    crew = [ServedJudge(device, command) for _ in range(max(1, min(judges, len(todo))))]
    started = time.monotonic()
    try:
        machine = _machine(header, crew[0]) if todo else None
        with results.open("ab") as out:
            end = None if seconds is None else started + seconds
            done, left = _work(header, todo, machine, crew, out, end) if machine is not None else (0, 0)
    except KeyboardInterrupt:
        print(f"Interrupted. {results} keeps what is answered; the same command does the rest.", file=sys.stderr)
        return _INTERRUPTED
    except JudgeFault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return _INTERNAL
    except OSError as error:
        print(f"error: {results}: {error.strerror}", file=sys.stderr)
        return _USAGE
    finally:
        for judge in crew:
            judge.close()
    print(f"{results}: tasks answered before: {len(have)}, now: {done}, left: {left + len(faults)}")
    return _INCOMPLETE if left or faults else _OK


def _machine(header: Header, judge: Asked) -> Machine:
    """Return the device of a judge, which is of the bundle's kind. Raises JudgeFault."""
    machine = describe(judge)
    if machine.device.kind is not header.device_kind:
        raise JudgeFault(
            f"the bundle is for {header.device_kind.value}, and this device is {machine.device.kind.value}"
        )
    return machine


def _work(
    header: Header, tasks: list[Task], machine: Machine, judges: Sequence[Asked], out: BinaryIO, end: float | None
) -> tuple[int, int]:
    """Answer tasks until the time is over; return how many are answered, and how many left. Raises JudgeFault."""
    work = _Work(header.bundle_id, list(_fitting(machine, tasks)), out, end)
    if len(judges) > 1:
        work.set_aside(TaskKind.CONFIRM)
    with ThreadPoolExecutor(len(judges)) as threads:
        futures = [threads.submit(work.run, judge, alone=len(judges) == 1) for judge in judges]
        try:
            for future in futures:
                future.result()
        except KeyboardInterrupt:
            work.give_up()  # the pool waits for its threads
            for judge in judges:
                judge.end()
            raise
    for judge in judges[1:] if work.failed else ():
        judge.close()
    work.run_failed(judges[0])
    if work.faults >= MOST_FAULTS:
        raise JudgeFault(f"{work.faults} tasks in a row failed by a fault of this machine: {work.error}")
    return work.done, len(tasks) - work.done


def _fitting(machine: Machine, tasks: list[Task]) -> Iterator[Task]:
    for task in tasks:
        if misfit := machine.misfit(task):
            print(f"{task.kind.value} {task.job_id}: not done here: {misfit}", file=sys.stderr)
        else:
            yield task


class _Work:
    """The tasks of a bundle, which judges take one by one, and their answers.

    What fails while other judges use the device is done once more at the end, `alone`. Confirmations are done alone:
    another judge's compilers may run kernels on the device between its checks, and a confirmation is the last word.
    """

    def __init__(self, bundle_id: str, tasks: list[Task], out: BinaryIO, end: float | None) -> None:
        self.done, self.faults, self.error = 0, 0, ""
        self.failed = list[Task]()
        self._given_up = False
        self._bundle_id, self._tasks, self._count, self._out, self._end = bundle_id, tasks, len(tasks), out, end
        self._lock = threading.Lock()

    def run(self, judge: Asked, *, alone: bool) -> None:
        """Answer one task after the other until there is none, the time is over, or this machine is at fault."""
        while (task := self._next()) is not None:
            answer = do(self._bundle_id, task, judge, again=not alone)
            if not alone and (fault := answer.error or _internal_error(answer)):
                print(f"{task.kind.value} {task.job_id}, again at the end: {fault}", file=sys.stderr)
                self.failed.append(task)
            else:
                self._keep(answer)

    def give_up(self) -> None:
        """Begin no task any more, and keep no answer of those that were begun: their judges are closed."""
        with self._lock:
            self._given_up, self._tasks = True, []

    def set_aside(self, kind: TaskKind) -> None:
        """Leave the tasks of a kind to `run_failed`."""
        self.failed += [task for task in self._tasks if task.kind is kind]
        self._tasks = [task for task in self._tasks if task.kind is not kind]

    def run_failed(self, judge: Asked) -> None:
        """Do what was set aside, or failed beside others."""
        self._tasks, self.failed = self.failed, []
        self.run(judge, alone=True)

    def _next(self) -> Task | None:
        with self._lock:
            over = self._end is not None and time.monotonic() >= self._end
            return self._tasks.pop(0) if self._tasks and not over and self.faults < MOST_FAULTS else None

    def _keep(self, answer: Answer) -> None:
        with self._lock:
            if self._given_up:
                return
            _append(self._out, write_line(answer))
            self.done += 1
            self.faults, self.error = (self.faults + 1, answer.error) if answer.error else (0, "")
            said = answer.error or _said(answer)
            print(f"{self.done}/{self._count} {answer.kind.value} {answer.job_id}: {said}", file=sys.stderr)


def describe(judge: Asked) -> Machine:
    """Return the judge's device and versions. Raises JudgeFault."""
    said = judge.request("describe", deadline_s=DEADLINES_S["describe"])
    try:
        return Machine(from_json(Device, said["device"]), from_json(Environment, said["environment"]))
    except (SchemaError, KeyError, TypeError) as error:
        raise JudgeFault(f"describe: {error}") from error


def do(bundle_id: str, task: Task, judge: Asked, *, again: bool = False) -> Answer:
    """Return the answer to one task. A fault of this machine is an answer, too: the work goes back to its queue.

    Unless the task will be done `again`, a fault in the step after its own leaves only that step in the queue.
    """

    def answer(**parts: Any) -> Answer:
        return Answer(bundle_id=bundle_id, job_id=task.job_id, lease=task.lease, kind=task.kind, **parts)

    def ask(op: str, kind: type[T], **payload: Any) -> T:
        values = {key: value if isinstance(value, bool) else to_json(value) for key, value in payload.items()}
        result = judge.request(op, deadline_s=DEADLINES_S[op], problem=to_json(task.problem), **values)
        try:
            return from_json(kind, result)
        except SchemaError as error:
            raise JudgeFault(f"{op}: the judge's answer is invalid: {error}") from error

    try:
        found = _STEPS[task.kind](task, ask)
        try:
            found |= _step_after(task, ask, found)
        except JudgeFault as fault:
            if again:
                raise
            print(f"{task.kind.value} {task.job_id}, the step after it: {fault}", file=sys.stderr)
        return answer(**found)
    except JudgeFault as fault:
        return answer(error=str(fault) or "the judge gave no reason")


def _admit(task: Task, ask: Callable[..., Any]) -> dict[str, Any]:
    return {"admission": ask("admit", Admission)}


def _baseline(task: Task, ask: Callable[..., Any]) -> dict[str, Any]:
    """Return every Baseline: nobody waits for the first ones, and the next trip may be hours away."""
    return {"baseline": ask("baseline", BaselineReport, whole=True)}


def _build(task: Task, ask: Callable[..., Any]) -> dict[str, Any]:
    return {"build": ask("build", BuildReport, candidate=task.candidate)}


def _judge(task: Task, ask: Callable[..., Any]) -> dict[str, Any]:
    parts = {"candidate": task.candidate, "baseline": task.baseline, "quick": task.quick, "best": dict(task.best)}
    return {"evaluation": ask("judge", Evaluation, **parts)}


def _step_after(task: Task, ask: Callable[..., Any], found: dict[str, Any]) -> dict[str, Any]:
    if task.kind is TaskKind.ADMIT and found["admission"].accepted:
        return _baseline(task, ask)
    if task.kind is TaskKind.BUILD and found["build"].evaluation is None:
        return _judge(task, ask)
    return {}


def _confirm(task: Task, ask: Callable[..., Any]) -> dict[str, Any]:
    parts = {"candidate": task.candidate, "champion": task.champion, "baseline": task.baseline}
    return {"evaluation": ask("confirm", Evaluation, **parts)}


_STEPS = {
    TaskKind.ADMIT: _admit,
    TaskKind.BASELINE: _baseline,
    TaskKind.BUILD: _build,
    TaskKind.JUDGE: _judge,
    TaskKind.CONFIRM: _confirm,
}


def _internal_error(answer: Answer) -> str:
    """Return the reason of a result that is this machine's fault, such as a want of memory; "" if there is none."""
    built = answer.build.evaluation if answer.build is not None else None
    results = (answer.admission, answer.evaluation, built)
    return next((one.reason for one in results if one is not None and one.verdict is Verdict.INTERNAL_ERROR), "")


def _said(answer: Answer) -> str:
    found = answer.evaluation or (answer.build.evaluation if answer.build is not None else None)
    if found is not None:
        ratio = found.speedup("fastest") if found.verdict is Verdict.PASSED else None
        return found.verdict.value + (f", {ratio.value:.2f}x" if ratio is not None else f" ({found.reason})")
    return answer.admission.reason if answer.admission is not None else "done"


def _lines(results: Path) -> list[str]:
    return results.read_text(encoding="utf-8", errors="replace").split("\n") if results.exists() else []


def _append(out: BinaryIO, line: str) -> None:
    """Write a line, begun on a line of its own: the last one may have been cut."""
    out.write(b"\n" + line.encode() + b"\n")
    out.flush()
    os.fsync(out.fileno())
