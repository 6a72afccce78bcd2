"""The first step of asking a model: the work's rows as the values that a prompt is made of."""

from __future__ import annotations

from db.views.work import Approach, ParentView, ProposeWork
from evolution.lessons import describe
from evolution.types import SLOTS
from prompts import ApproachNote, GraphNote, LessonNote, Material, ParentNote, PrecedentNote, RememberedNote
from synthesis.slots import GUIDE


def material(work: ProposeWork, notes: tuple[str, ...], graph: GraphNote | None = None) -> Material:
    """Return everything that a prompt for this work may say. `notes` are refusals of earlier replies."""
    found = work.remembered
    return Material(
        problem=work.problem,
        device_kind=work.device_kind,
        operator=work.arm.operator,
        device_name=work.device_name,
        device_facts=work.device_facts,
        facts=work.facts,
        baseline=work.baseline,
        parents=tuple(_parent(parent) for parent in work.parents),
        lessons=tuple(
            LessonNote(
                verdict=lesson.verdict.value,
                stage=lesson.stage.value,
                reason=lesson.reason,
                language=lesson.language.value,
                count=lesson.count,
            )
            for lesson in work.lessons
        ),
        varied=work.varied,
        approaches=tuple(_approach(one) for one in work.approaches),
        remembered=None
        if found is None
        else RememberedNote(problem=found.problem, speedup=found.speedup, source=found.source),
        precedents=tuple(
            PrecedentNote(problem=one.problem, said=describe(one.lesson), sizes=one.sizes) for one in work.precedents
        ),
        graph=graph,
        number=work.number,
        notes=notes,
        variant=work.arm.variant,
        blocks=GUIDE if work.arm.variant == SLOTS else "",
    )


def _parent(parent: ParentView) -> ParentNote:
    return ParentNote(
        source=parent.source,
        language=parent.language,
        verdict=parent.verdict.value if parent.verdict else "",
        stage=parent.stage.value if parent.stage else "",
        reason=parent.reason,
        evidence=parent.evidence,
        resources=parent.resources,
        measurements=parent.measurements,
        ratios=parent.ratios,
        outdated=parent.outdated,
        configuration=parent.configuration,
        relatives=tuple(_approach(one) for one in parent.relatives),
        plan=parent.plan,
    )


def _approach(one: Approach) -> ApproachNote:
    return ApproachNote(
        number=one.number,
        language=one.language.value,
        niche=one.niche,
        verdict=one.verdict.value if one.verdict is not None else "",
        stage=one.stage.value,
        reason=one.reason,
        said=one.said,
        speedup=one.speedup,
        measurements=one.measurements,
        ratios=one.ratios,
        outdated=one.outdated,
        configuration=one.configuration,
    )
