"""From Material to the messages that a model gets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.schema import to_json
from evaluator.types import Language, Workload
from evolution.types import Operator
from prompts.budget import Section, clip, estimate_tokens, fit
from prompts.library import fill, identity
from prompts.material import Material, ParentNote
from prompts.redact import without_held_out
from prompts.techniques import angle, techniques

EVIDENCE_CHARACTERS = 3000
TEXT_CHARACTERS = 1500
MAX_LESSONS = 12
MAX_NOTES = 3
MAX_APPROACHES = 6
_PARTS = ("workloads", "device", "techniques", "remembered", "approaches", "lessons", "notes", "parent")
OPERATORS = (Operator.CREATE, Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is sent. `template` names and hashes what it was made from; `shortened` lists what did not fit."""

    system: str
    user: str
    template: str
    tokens: int
    shortened: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Both messages as one text, as it is stored with the Proposal."""
        return f"[system]\n{self.system}\n\n[user]\n{self.user}"


def render(material: Material, *, tokens: int) -> Prompt:
    """The messages for one Proposal within about `tokens` tokens.

    Raises PromptTooLarge where the reference and the parents alone are longer, ValueError for an Operator that
    asks no model.
    """
    if material.operator not in OPERATORS:
        raise ValueError(f"no model is asked to {material.operator}")
    guide = f"guide_{material.language.value if material.language is not Language.TORCH else 'cpp'}"
    names = (material.operator.value, "system", *_PARTS, guide)
    system = fill("system", problem=material.problem)
    user, shortened = fit(_sections(material, guide), tokens - estimate_tokens(system))
    return Prompt(
        system=system,
        user=user,
        template=identity(names),
        tokens=estimate_tokens(system) + estimate_tokens(user),
        shortened=shortened,
    )


def follow_up(reason: str) -> str:
    """What is said to a model whose reply could not be used."""
    return fill("follow_up", reason=reason.rstrip("."))


def _sections(material: Material, guide: str) -> list[Section]:
    """What stays the same over a Run comes first, so that endpoints can cache the beginning of its prompts."""
    shown = [w for w in material.problem.workloads_for(material.device_kind) if not w.held_out]
    source = without_held_out(material.problem.source, material.device_kind).strip()
    device = fill("device", name=material.device_name, kind=material.device_kind, facts=_facts(material))
    lines = techniques(material.language, source, _over_floor(material))
    return [
        Section("guide", 90, (fill(guide, brief=False), fill(guide, brief=True))),
        Section("reference", 100, (f"## The reference\n\n```python\n{source}\n```",)),
        Section("workloads", 80, (_workloads(material, shown), "")),
        Section("device", 50, (device, "")),
        Section("techniques", 55, (fill("techniques", lines=lines), "") if lines else ("",)),
        Section("remembered", 35, _remembered(material)),
        Section("approaches", 45, _shorter("approaches", material.approaches[:MAX_APPROACHES])),
        Section("lessons", 40, _shorter("lessons", material.lessons)),
        Section("notes", 70, _shorter("notes", [clip(note, 600) for note in material.notes[:MAX_NOTES]])),
        *(_parent(material, parent, number, shown) for number, parent in enumerate(material.parents, 1)),
        Section("ask", 100, (_ask(material),)),
    ]


def _ask(material: Material) -> str:
    return fill(material.operator.value, language=_language_name(material.language), angle=angle(material.number))


def _remembered(material: Material) -> tuple[str, ...]:
    """Written for another reference, so it goes before anything that is about this one."""
    found = material.remembered
    return (fill("remembered", remembered=found), "") if found is not None else ("",)


def _shorter(name: str, items: Sequence[object]) -> tuple[str, ...]:
    """A list in forms that get shorter, the last one empty."""
    counts = dict.fromkeys(min(limit, len(items)) for limit in (MAX_LESSONS, 6, 3, 0))
    return tuple(fill(name, **{name: items[:count]}) if count else "" for count in counts) or ("",)


def _floors(material: Material) -> dict[str, float]:
    return {fact.workload: fact.floor_us for fact in material.facts if fact.floor_us}


def _over_floor(material: Material) -> float | None:
    """How many times the least possible time the parent takes, or else the fastest Baselines."""
    floors = _floors(material)
    times: Mapping[str, float] = material.parents[0].times_us if material.parents else {}
    if not times and material.baseline is not None:
        names = {time.workload for time in material.baseline.times}
        times = {name: material.baseline.fastest(name).median_us for name in names}
    ratios = [math.log(times[name] / floor) for name, floor in floors.items() if times.get(name)]
    return math.exp(sum(ratios) / len(ratios)) if ratios else None


def _workloads(material: Material, shown: list[Workload]) -> str:
    facts = {fact.workload: fact for fact in material.facts}
    rows = [
        {
            "name": workload.name,
            "sizes": dict(workload.sizes),
            "weight": workload.weight,
            "facts": facts.get(workload.name),
            "baselines": sorted(
                (
                    time
                    for time in (material.baseline.times if material.baseline else ())
                    if time.workload == workload.name
                ),
                key=lambda time: time.median_us,
            ),
        }
        for workload in shown
    ]
    return fill("workloads", rows=rows)


def _facts(material: Material) -> dict[str, str]:
    return {
        key: clip(value if isinstance(value, str) else json.dumps(to_json(value)), 200)
        for key, value in sorted(material.device_facts.items())
        if value is not None
    }


def _parent(material: Material, parent: ParentNote, number: int, shown: list[Workload]) -> Section:
    names = {workload.name for workload in shown}
    values = {
        "parent": parent,
        "number": number if len(material.parents) > 1 else None,
        "times": {name: time for name, time in parent.times_us.items() if name in names},
        "floors": _floors(material),
    }
    secret = {workload.name for workload in material.problem.workloads} - names
    evidence, resources = (_evidence(_visible(said, secret)) for said in (parent.evidence, parent.resources))
    whole = fill("parent", evidence=evidence, resources=resources, **values)
    short = fill("parent", evidence="", resources="", **values)
    return Section(f"parent {number}", 60, (whole, short))


def _visible(value: Any, secret: set[str]) -> Any:
    """Evidence without what names a Workload that is not shown, and without what says nothing."""
    if isinstance(value, Mapping):
        kept = {key: _visible(item, secret) for key, item in value.items() if key not in secret}
        return {key: item for key, item in kept.items() if item not in ([], {}, "", None)}
    if isinstance(value, list | tuple):
        return [_visible(item, secret) for item in value if not (isinstance(item, str) and item in secret)]
    return value


def _evidence(value: Mapping[str, Any]) -> str:
    """Evidence as indented JSON, long texts cut in their middle."""
    if not value:
        return ""
    return clip(json.dumps(_clipped(to_json(value)), indent=1, ensure_ascii=False), EVIDENCE_CHARACTERS)


def _clipped(value: Any) -> Any:
    if isinstance(value, str):
        return clip(value, TEXT_CHARACTERS)
    if isinstance(value, dict):
        return {key: _clipped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clipped(item) for item in value[:20]]
    return value


def _language_name(language: Language) -> str:
    return {
        Language.CPP: "C++ through load_cpp",
        Language.TRITON: "Triton",
        Language.CUDA: "CUDA C++ through load_cuda",
        Language.TORCH: "PyTorch with native code where it pays",
    }[language]
