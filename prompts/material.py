"""What a prompt is made of: plain values, held-out Workloads already left out by `render`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluator.languages import usual_language
from evaluator.types import BaselineReport, DeviceKind, Language, Measurement, Problem, Ratio, WorkloadFacts
from evolution.types import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproachNote:
    """A kernel that was answered: what its writer said it does, and what became of it (`verdict` "": not judged yet).

    `measurements` and `ratios` are of one judging; there are none unless it PASSED.
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
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentNote:
    """A parent: its source, what the judge found, and how fast it is, beside the Baseline of the same session.

    `relatives` are other values of its Tunables that were judged.
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
    configuration: Mapping[str, Any] = field(default_factory=dict)
    relatives: tuple[ApproachNote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonNote:
    """One way in which earlier Candidates failed, and how many did."""

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
    """What a value of a Tunable was worth on a similar Problem: one line, and where it was seen."""

    problem: str
    said: str
    sizes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that a prompt may say. `notes` are refusals of earlier replies, newest first.

    `approaches` are earlier answers, failures included; `varied` are nearby sizes that are checked too; `number` turns
    what a prompt asks to look at first.

    `variant` is "default", or the language to ask for (a `Language` value).
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
    number: int = 0
    variant: str = "default"

    @property
    def language(self) -> Language:
        """The language to answer in: the variant's, else the first parent's native one, else the device's usual one."""
        if self.variant in {language.value for language in Language}:
            return Language(self.variant)
        if self.parents and self.parents[0].language is not Language.TORCH:
            return self.parents[0].language
        return usual_language(self.device_kind)
