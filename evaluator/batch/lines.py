"""The format of bundles and answers: JSON lines, each with the hash of its value, so that a cut or changed one shows.

The first line of a bundle is its Header, each other one a Task. A file of answers has one Answer a line, in any order:
files may be cut, joined and repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from evaluator.schema import SchemaError, from_json, to_json
from evaluator.types import (
    SCHEMA_VERSION,
    Admission,
    BaselineReport,
    BuildReport,
    Candidate,
    DeviceKind,
    Evaluation,
    Problem,
    canonical_json,
    content_hash,
)

FORMAT = "warpwright-bundle 1"


class BadLine(ValueError):
    """A line is no whole, unchanged line of a bundle or of its answers; the message says why."""


class TaskKind(StrEnum):
    """The step to take. A build goes on to the judgement, an admission to the Baselines."""

    ADMIT = "admit"
    BASELINE = "baseline"
    BUILD = "build"
    JUDGE = "judge"
    CONFIRM = "confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a bundle. Answers that come after `expires_at` are taken if nobody else did the work."""

    bundle_id: str
    device_kind: DeviceKind
    tasks: int
    created_at: str
    expires_at: str
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One step for a device. Who has its `lease` may answer it, once.

    With a `baseline` the machine must be of the same device and versions: times are compared. A `quick` judgement ends
    what is clearly slower than the `best` speedups so far, by Workload.
    """

    job_id: str
    lease: str
    kind: TaskKind
    problem: Problem
    candidate: Candidate | None = None
    champion: Candidate | None = None
    baseline: BaselineReport | None = None
    quick: bool = False
    best: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        needs = self.kind in (TaskKind.BUILD, TaskKind.JUDGE, TaskKind.CONFIRM)
        if needs and self.candidate is None:
            raise ValueError(f"a task to {self.kind} has a candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a Task: that of its step, and of the next one; or the fault of the machine that did it."""

    bundle_id: str
    job_id: str
    lease: str
    kind: TaskKind
    admission: Admission | None = None
    baseline: BaselineReport | None = None
    build: BuildReport | None = None
    evaluation: Evaluation | None = None
    error: str = ""

    def __post_init__(self) -> None:
        own = {
            TaskKind.ADMIT: self.admission,
            TaskKind.BASELINE: self.baseline,
            TaskKind.BUILD: self.build,
            TaskKind.JUDGE: self.evaluation,
            TaskKind.CONFIRM: self.evaluation,
        }[self.kind]
        if (own is None) == (not self.error):
            raise ValueError("an answer has the result of its step, or an error")


T = TypeVar("T", Header, Task, Answer)


def write_line(value: Header | Task | Answer) -> str:
    """Return a value as one line, without its end."""
    body = to_json(value)
    return json.dumps({"sha256": _digest(body), "value": body}, separators=(",", ":"), allow_nan=False)


def read_line(kind: type[T], line: str) -> T:
    """Read one line. Raises BadLine."""
    try:
        found = json.loads(line)
        if not isinstance(found, dict) or set(found) != {"sha256", "value"}:
            raise BadLine("this is not a line of a bundle or answer file")
        if found["sha256"] != _digest(found["value"]):
            raise BadLine("the line is not what its hash says: it was changed")
        return from_json(kind, found["value"])
    except SchemaError as error:
        raise BadLine(f"the line is from another version: {error}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadLine):
            raise
        raise BadLine("the line is cut off or no JSON") from error


def read_bundle(text: str) -> tuple[Header, list[Task], list[str]]:
    """Return a bundle's header, its whole tasks, and the faults of its other lines. Raises BadLine for the header."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise BadLine("the bundle is empty")
    header = read_line(Header, lines[0])
    if header.format != FORMAT or header.schema_version != SCHEMA_VERSION:
        raise BadLine(
            f"this is {header.format}, schema {header.schema_version}, and here is {FORMAT}, schema {SCHEMA_VERSION}: "
            "use the same version of Warpwright on both machines"
        )
    tasks, faults = list[Task](), list[str]()
    for number, line in enumerate(lines[1:], 2):
        try:
            tasks.append(read_line(Task, line))
        except BadLine as error:
            faults.append(f"line {number}: {error}")
    if len(tasks) + len(faults) < header.tasks:
        faults.append(f"{header.tasks - len(tasks) - len(faults)} tasks are missing: the bundle was cut")
    return header, tasks, faults


def answered(lines: Iterable[str]) -> Iterator[Answer]:
    """Yield the whole answers of a file, in order."""
    for line in lines:
        if line.strip():
            try:
                yield read_line(Answer, line)
            except BadLine:
                continue


def _digest(value: object) -> str:
    return content_hash(canonical_json(value))
