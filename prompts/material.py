"""The input of a prompt, as plain values. `render` leaves out the held-out Workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.languages import usual_language
from evaluator.types import BaselineReport, DeviceKind, Language, Measurement, Problem, Ratio, WorkloadFacts
from evolution.types import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproachNote:
    """An earlier answer: the model's description and the judge's verdict ("" before it is judged).

    `measurements` and `ratios` come from one judgement; there are none unless it PASSED. Where it is `outdated`,
    `ratios` are estimates over a later Baseline.
    """

    number: int
    language: str
    niche: str
    verdict: str
    stage: str = ""
    reason: str = ""
    said: str = ""
    speedup: float | None = None
    measurements: tuple[Measurement, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    outdated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentNote:
    """A parent: its source, the judge's findings, and its times with those of the Baseline from the same session.

    Where it is `outdated`, `ratios` are estimates over a later Baseline.
    `relatives` are judged Candidates with other values of its Tunables. `plan` is what its model meant to do.
    """

    source: str
    language: Language
    verdict: str = ""
    stage: str = ""
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    outdated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)
    relatives: tuple[ApproachNote, ...] = ()
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonNote:
    """A kind of failure of earlier Candidates, and their number."""

    verdict: str
    stage: str
    reason: str
    language: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedNote:
    """The Champion of a similar Problem."""

    problem: str
    speedup: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedentNote:
    """The gain of a value of a Tunable on a similar Problem, in one line, with that Problem's name and sizes."""

    problem: str
    said: str
    sizes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationNote:
    """One operation of the reference's graph: its operands and result in words, its bytes if it ran alone."""

    name: str
    inputs: str
    output: str
    bytes: int
    flops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNote:
    """The operations of the reference on one Workload, in order, without those that only change a view."""

    workload: str
    operations: tuple[OperationNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All data for a prompt. `notes` are refusals of earlier replies, newest first.

    `approaches` are earlier answers, including failures. `varied` are nearby sizes that are checked, too. `number`
    rotates the aspect that a prompt names first. `variant` is "default", SLOTS, or the language to ask for (a
    `Language` value). `blocks` tells how to fill the slots of a block.
    """

    problem: Problem
    device_kind: DeviceKind
    operator: Operator
    device_name: str = ""
    device_facts: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[WorkloadFacts, ...] = ()
    baseline: BaselineReport | None = None
    parents: tuple[ParentNote, ...] = ()
    lessons: tuple[LessonNote, ...] = ()
    notes: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    approaches: tuple[ApproachNote, ...] = ()
    remembered: RememberedNote | None = None
    precedents: tuple[PrecedentNote, ...] = ()
    graph: GraphNote | None = None
    number: int = 0
    variant: str = "default"
    blocks: str = ""

    @property
    def language(self) -> Language:
        """The Language of the answer: the variant's, else the first parent's native one, else the device's default."""
        if self.variant in {language.value for language in Language}:
            return Language(self.variant)
        if self.parents and self.parents[0].language is not Language.TORCH:
            return self.parents[0].language
        return usual_language(self.device_kind)
