"""Render Material as the messages for a model."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluator.languages import adapter
from evaluator.types import Domain, Measurement, Precision, Problem, Workload, WorkloadFacts
from evolution.types import SLOTS, Operator
from prompts import times
from prompts.budget import Section, clip, estimate_tokens, fit
from prompts.device import described
from prompts.floors import floors, launch_us, matmul_gflops, skinny
from prompts.library import fill, guide, identity, settings
from prompts.material import ApproachNote, Material, ParentNote
from prompts.redact import without_held_out
from prompts.results import results
from prompts.rules import rule_values
from prompts.techniques import angle, techniques

MAX_LESSONS = 12
MAX_NOTES = 3
REASON_CHARACTERS = 160
MAX_OPERATIONS = 24
MAX_VARIED = 16
CODE_CHARACTERS = (7000, 3000)
_PARTS = (
    "workloads",
    "device",
    "timing",
    "graph",
    "compiled",
    "beside",
    "techniques",
    "remembered",
    "precedents",
    "approaches",
    "lessons",
    "notes",
    "parent",
    "results",
)
# Factor and addend of a good implementation's error in norm, then of an element's: `comparison.tolerances`.
TOLERANCES: Mapping[str, tuple[float, float, float, float]] = {
    "float64": (4, 3e-15, 8, 3e-14),
    "float32": (4, 3e-7, 16, 1e-6),
    "float16": (2, 2.5e-4, 4, 1e-3),
    "bfloat16": (2, 2e-3, 4, 8e-3),
}
OPERATORS = (Operator.CREATE, Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The messages to send. `template` identifies the templates; `shortened` names the sections that did not fit."""

    system: str
    user: str
    template: str
    tokens: int
    shortened: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Both messages as one text, as stored with the Proposal."""
        return f"[system]\n{self.system}\n\n[user]\n{self.user}"


def render(material: Material, *, tokens: int) -> Prompt:
    """Return the messages for one Proposal, within about `tokens` tokens.

    Raises PromptTooLarge if the reference and the parents alone are longer, ValueError for an Operator that needs no
    model.
    """
    if material.operator not in OPERATORS:
        raise ValueError(f"no model is asked to {material.operator}")
    how = "blocks" if material.variant == SLOTS else guide(material.language)
    names = (_asked(material), "system", "rules", *_PARTS, how)
    system = fill("system", **rule_values(material.problem, material.device_kind, varied=bool(material.varied)))
    user, shortened = fit(_sections(material, how), tokens - estimate_tokens(system))
    return Prompt(
        system=system,
        user=user,
        template=identity(names),
        tokens=estimate_tokens(system) + estimate_tokens(user),
        shortened=shortened,
    )


def follow_up(reason: str, *, slots: bool = False) -> str:
    """Return the message to a model after an unusable reply; `slots` were asked for."""
    return fill("follow_up", reason=reason.rstrip("."), slots=slots)


def _asked(material: Material) -> str:
    """Return the name of the template with the task."""
    return material.variant if material.variant == SLOTS else material.operator.value


def _sections(material: Material, how: str) -> list[Section]:
    """Return the sections, constant ones of a Run first, so that endpoints can cache the beginning of its prompts."""
    shown = [w for w in material.problem.workloads_for(material.device_kind) if not w.held_out]
    source = without_held_out(material.problem.source, material.device_kind).strip()
    names = {workload.name for workload in shown}
    environment = material.baseline.environment if material.baseline is not None else None
    facts = described(material.device_facts, environment)
    device = fill("device", name=material.device_name, kind=material.device_kind, facts=facts)
    timing = fill("timing", kind=material.device_kind, launch_us=launch_us(material.device_kind))
    over, own = _over_floor(material, names)
    disturbed = own and times.was_disturbed(times.rows(material.parents[0].measurements, (), names, {}))
    flags = material.device_facts.get("flags", ())
    lines = techniques(
        material.language, source, over, own=own, disturbed=disturbed, flags=flags, skinny=skinny(material.facts)
    )
    answered = [_approach_line(one, names) for one in material.approaches]
    return [
        Section("guide", 90, _guide(material, how)),
        Section("reference", 100, (f"## The reference\n\n```python\n{source}\n```",)),
        Section("workloads", 80, (_workloads(material, shown), "")),
        Section("device", 50, (device, "")),
        Section("timing", 65, (timing, "")),
        Section("graph", 42, _graph(material)),
        Section("compiled", 44, _compiled(material, shown)),
        Section("beside", 75, _beside(material, names)),
        Section("techniques", 55, (fill("techniques", lines=lines), "") if lines else ("",)),
        Section("remembered", 35, _remembered(material)),
        Section("precedents", 36, _list_forms("precedents", material.precedents)),
        Section("approaches", 45, _list_forms("approaches", answered)),
        Section("lessons", 40, _list_forms("lessons", material.lessons)),
        Section("notes", 70, _list_forms("notes", [clip(note, 600) for note in material.notes[:MAX_NOTES]])),
        *(_parent(material, parent, number, shown) for number, parent in enumerate(material.parents, 1)),
        Section("ask", 100, (_ask(material, over if own and not disturbed else {}),)),
    ]


def _ask(material: Material, over: Mapping[str, float]) -> str:
    first = angle(material.number, over, material.device_kind)
    return fill(_asked(material), language=adapter(material.language).title, angle=first)


def _guide(material: Material, how: str) -> tuple[str, ...]:
    """Return the forms of the language's guide, or of the block's."""
    if material.variant == SLOTS:
        return (fill(how, blocks=material.blocks),)
    general = material.problem.domain is Domain.GENERAL
    return tuple(fill(how, brief=brief, general=general) for brief in (False, True))


def _approach_line(one: ApproachNote, names: set[str]) -> str:
    """Return one line for an earlier answer: its result and the model's description."""
    measured = times.brief(one.measurements, one.ratios, names, outdated=one.outdated)
    failed = f"{one.verdict} at {one.stage}: {textwrap.shorten(one.reason, REASON_CHARACTERS, placeholder=' ...')}"
    became = measured or (failed if one.verdict else "being judged")
    kind = f"{one.language}, {one.niche}" if one.niche and not one.said else one.language
    return f"answer {one.number} ({kind}): {became}" + (f" | {one.said}" if one.said else "")


def _configuration_line(one: ApproachNote, names: set[str]) -> str:
    """Return one line for another Configuration of a parent."""
    measured = times.brief(one.measurements, one.ratios, names, outdated=one.outdated)
    return f"{settings(one.configuration) or 'as written'}: {measured or f'{one.verdict}: {one.reason}'}"


def _remembered(material: Material) -> tuple[str, ...]:
    """Return the forms of a similar Problem's Champion. It is the first to be left out: it is for another reference."""
    found = material.remembered
    return (fill("remembered", remembered=found), "") if found is not None else ("",)


def _list_forms(name: str, items: Sequence[object]) -> tuple[str, ...]:
    """Return a list in ever shorter forms, the last one empty."""
    counts = dict.fromkeys(min(limit, len(items)) for limit in (MAX_LESSONS, 6, 3, 0))
    return tuple(fill(name, **{name: items[:count]}) if count else "" for count in counts) or ("",)


def _floors(material: Material) -> dict[str, float]:
    return {name: floor.us for name, floor in floors(material.facts, material.device_kind, material.baseline).items()}


def _measured(material: Material, names: set[str]) -> Sequence[Measurement]:
    """Return the newest measurements of a kernel beside the Baseline: the first parent's, else an answer's."""
    newest = sorted(material.approaches, key=lambda one: -one.number)
    found = (*(parent.measurements for parent in material.parents[:1]), *(one.measurements for one in newest))
    return next((one for one in found if any(m.baselines for m in one if m.workload in names)), ())


def _beside(material: Material, names: set[str]) -> tuple[str, ...]:
    """Return the forms of the Baseline's newest times; a parent that was timed shows them itself."""
    if material.parents and material.parents[0].measurements:
        return ("",)
    measured = [m for m in _measured(material, names) if m.workload in names and m.baselines]
    best = [min(m.baselines, key=lambda time: time.median_us) for m in measured]
    return (fill("beside", times=best), "") if best else ("",)


def _compiled(material: Material, shown: list[Workload]) -> tuple[str, ...]:
    """Return the forms of what torch.compile made, for the heaviest Workload where it is the fastest Baseline."""
    timed = {time.workload for time in material.baseline.times} if material.baseline is not None else set()
    weighty = sorted((one for one in shown if one.name in timed), key=lambda one: -one.weight)
    for workload in weighty:
        assert material.baseline is not None
        best = material.baseline.fastest(workload.name)
        if best.code:
            return (*dict.fromkeys(fill("compiled", time=best, code=clip(best.code, n)) for n in CODE_CHARACTERS), "")
    return ("",)


def _graph(material: Material) -> tuple[str, ...]:
    """Return the forms of the reference's graph: its heaviest operations in order, then fewer of them."""
    graph = material.graph
    if graph is None or not graph.operations:
        return ("",)
    fact = next((one for one in material.facts if one.workload == graph.workload), None)
    rate = fact.bytes_moved / fact.floor_us if fact is not None and fact.floor_us else None
    forms = []
    for most in (MAX_OPERATIONS, 8):
        heavy = sorted(range(len(graph.operations)), key=lambda i: -graph.operations[i].bytes)[:most]
        shown = [graph.operations[i] for i in sorted(heavy)]
        rows = [{**dataclasses.asdict(one), "least_us": one.bytes / rate if rate else None} for one in shown]
        about = {
            "workload": graph.workload,
            "bytes": sum(one.bytes for one in graph.operations),
            "fused_bytes": fact.bytes_moved if fact is not None else 0,
        }
        left_out = len(graph.operations) - len(shown)
        forms.append(fill("graph", graph=about, operations=rows, timed=rate is not None, left_out=left_out))
    return (*dict.fromkeys(forms), "")


def _over_floor(material: Material, names: set[str]) -> tuple[dict[str, float], bool]:
    """Return each shown Workload's time over its floor, and True if the time is the first parent's.

    Without a timed parent it is the fastest Baseline's.
    """
    floors = _floors(material)
    parent = material.parents[0].measurements if material.parents else ()
    took = {m.workload: m.median_us for m in parent if m.workload in names}
    own = bool(took)
    if not own and material.baseline is not None:
        timed = {time.workload for time in material.baseline.times} & names
        took = {name: material.baseline.fastest(name).median_us for name in timed}
    return {name: took[name] / floor for name, floor in floors.items() if name in took}, own


def _workloads(material: Material, shown: list[Workload]) -> str:
    facts = {fact.workload: fact for fact in material.facts}
    least = floors(material.facts, material.device_kind, material.baseline)
    gflops = matmul_gflops(material.facts, material.baseline)
    rows = [
        {
            "name": workload.name,
            "sizes": dict(workload.sizes),
            "weight": workload.weight,
            "facts": facts.get(workload.name),
            "floor_us": least[workload.name].us if workload.name in least else None,
            "bound": least[workload.name].bound if workload.name in least else "",
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
    rates = [fact.bytes_moved / fact.floor_us * 1e6 for fact in facts.values() if fact.floor_us]
    every = material.problem.workloads_for(material.device_kind)
    return fill(
        "workloads",
        rows=rows,
        rate=rates[0] if rates else None,
        matmul=gflops * 1e9 if gflops else None,
        launch_us=launch_us(material.device_kind),
        stale=bool(_measured(material, {workload.name for workload in shown})),
        varied=material.varied,
        most_varied=MAX_VARIED,
        held_out=len(every) - len(shown),
        accuracy=_accuracy(material.problem, [facts[w.name] for w in shown if w.name in facts]),
    )


def _accuracy(problem: Problem, facts: Sequence[WorkloadFacts]) -> list[str]:
    """Return the allowed errors by dtype, if the Problem's precision is that of a good implementation."""
    if problem.precision is not Precision.EXACT:
        return []
    dtypes = dict.fromkeys(output.split()[0].partition("[")[0] for fact in facts for output in fact.outputs)
    return [
        f"Allowed error of {dtype} outputs: in norm {limit[0]:g} times a good implementation's plus {limit[1]:g}; "
        f"of any element, on the scale of its row, {limit[2]:g} times plus {limit[3]:g}."
        for dtype in dtypes
        if (limit := TOLERANCES.get(dtype)) is not None
    ]


def _parent(material: Material, parent: ParentNote, number: int, shown: list[Workload]) -> Section:
    names = {workload.name for workload in shown}
    secret = {workload.name for workload in material.problem.workloads} - names
    values = {"number": number if len(material.parents) > 1 else None}
    values |= results(parent, shown=names, secret=secret, floors=_floors(material))
    relatives = [_configuration_line(one, names) for one in parent.relatives]
    forms: tuple[dict[str, Any], ...] = (
        {"relatives": relatives},
        {"relatives": []},
        {"relatives": [], "evidence": "", "resources": ""},
    )
    return Section(f"parent {number}", 60, tuple(fill("parent", **{**values, **form}) for form in forms))
