"""The rules for the author of a kernel, whether a model or an agent: the judge's, how it times, how to write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluator.types import DeviceKind, Domain, Language, Problem
from prompts.floors import launch_us
from prompts.library import fill, guide


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Texts for a Problem on a kind of device, in a language."""

    judge: str
    timing: str
    guide: str


def describe_rules(problem: Problem, device_kind: DeviceKind, language: Language) -> Rules:
    """Return the rules of a Problem that no Run has admitted yet, or of any other."""
    sizes = {repr(one.sizes) for one in problem.workloads_for(device_kind) if not one.held_out}
    return Rules(
        judge=fill("rules", **rule_values(problem, device_kind, varied=len(sizes) > 1)),
        timing=fill("timing", kind=device_kind, launch_us=launch_us(device_kind)),
        guide=fill(guide(language), brief=False, general=problem.domain is Domain.GENERAL),
    )


def rule_values(problem: Problem, device_kind: DeviceKind, *, varied: bool) -> dict[str, Any]:
    """Return the values of the templates "rules" and "system"."""
    convolves = "conv" in problem.source.lower()
    return {
        "problem": problem,
        "kind": device_kind,
        "varied": varied,
        "tf32_convolutions": device_kind is DeviceKind.CUDA and convolves,
    }
