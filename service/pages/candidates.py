"""One Candidate as pages: results, source, changes, evidence, origin."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from db.engine import read_session
from db.repositories import candidates, evaluations, history, lineage, problems, proposals, runs
from db.views.rows import CandidateView, ChampionView
from evaluator.types import Evaluation, Verdict
from service.context import Ctx
from service.errors import NotFound
from service.exports import DEFAULT
from service.exports.parts.header import fastest_modes
from service.http.answering import CandidateId, checked_id, refusals
from service.identity.principal import Principal, Reads
from service.pages.gates import flat, report, why_not
from service.rendering.charts.times import rooflines, strips, workload_times
from service.rendering.diffs import diff
from service.rendering.highlighting import highlight, highlight_chat
from service.rendering.templates import page
from service.routers.downloads import KernelFormat, collect, deciding_evaluation, send

router = APIRouter()

MOST_RESOURCES = 60

TABS = (
    ("", "Overview"),
    ("source", "Source"),
    ("diff", "Diff"),
    ("evidence", "Evidence"),
    ("proposal", "Prompt and reply"),
    ("samples", "Samples"),
)
NEAR = 12


@router.get("/candidates/{id}")
def overview(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Show the verdict, the times by Workload, the origin and the verified domain."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "")
        view: CandidateView = values["candidate"]
        problem = values["problem"].problem
        official = _official(session, id)
        facts = problems.facts(session, view.problem_id, values["run"].device_kind)
        held_out = {w.name for w in problem.workloads if w.held_out}
        times = workload_times(official, held_out, facts) if official is not None else ()
        values |= {
            "official": official,
            "timed_against": fastest_modes(official) if official is not None else "",
            "resources": tuple(flat(official.resources))[:MOST_RESOURCES] if official is not None else (),
            "times": times,
            "roofs": rooflines(times),
            "parents": candidates.get_many(session, view.parents, project_id=who.project_id),
            "children": lineage.children(session, view.run_id, id, after_number=view.number, limit=NEAR)
            if values["own"]
            else (),
        }
    return page("candidate_overview.html", **values)


@router.get("/candidates/{id}/source")
def show_source(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Show the source, highlighted."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "source")
        source = candidates.source(session, id).source
    return page("candidate_source.html", **values, source=highlight(source), lines=source.count("\n") + 1)


@router.get("/candidates/{id}/diff")
def show_diff(
    context: Ctx, who: Reads, id: CandidateId, to: Annotated[str | None, Query(max_length=60)] = None
) -> Response:
    """Show the changes from a parent, or from any other Candidate named by `to`."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "diff")
        view: CandidateView = values["candidate"]
        parents = candidates.get_many(session, view.parents, project_id=who.project_id)
        chosen = checked_id(to, "candidate") if to is not None else next((one.id for one in parents), None)
        other = candidates.get(session, chosen, project_id=who.project_id) if chosen is not None else None
        sources = [candidates.source(session, one.id).source for one in (other, view) if one is not None]
    found = diff(sources[0], sources[1]) if other is not None else None
    return page("candidate_diff.html", **values, other=other, found=found, parents=parents)


@router.get("/candidates/{id}/evidence")
def show_evidence(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Show every Evaluation stage by stage, newest first."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "evidence")
        reports = [report(view) for view in reversed(evaluations.list(session, id))]
    return page("candidate_evidence.html", **values, reports=reports)


@router.get("/candidates/{id}/proposal")
def show_proposal(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Show the prompt, the reply and the cost."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "proposal")
        proposal = proposals.of_candidate(session, id, project_id=who.project_id)
    if proposal is None:
        raise NotFound("The Proposal of this Candidate is private to its project, or was deleted.")
    prompt, reply = highlight_chat(proposal.prompt or ""), highlight_chat(proposal.reply or "")
    return page("candidate_proposal.html", **values, proposal=proposal, prompt=prompt, reply=reply)


@router.get("/candidates/{id}/samples")
def show_samples(context: Ctx, who: Reads, id: CandidateId) -> Response:
    """Show the raw samples behind the official times."""
    with read_session(context.engine) as session, refusals():
        values = _frame(session, who, id, "samples")
        official = _official(session, id)
    found = [strips(m) for m in official.measurements] if official is not None else []
    return page("candidate_samples.html", **values, official=official, strips=found)


@router.get("/candidates/{id}/download")
def download(context: Ctx, who: Reads, id: CandidateId, form: KernelFormat = DEFAULT) -> Response:
    """Send the file of this Candidate; it states the verified domain and whether that was confirmed."""
    with read_session(context.engine) as session, refusals():
        view = candidates.get(session, id, project_id=who.project_id)
        export = collect(who, session, id, runs.get(session, view.run_id).device_kind)
    return send(export, form)


def _official(session: Session, candidate_id: str) -> Evaluation | None:
    return deciding_evaluation(evaluations.for_candidate(session, candidate_id))


def _frame(session: Session, who: Principal, candidate_id: str, tab: str) -> dict[str, Any]:
    """Return the values at the top of every tab."""
    view = candidates.get(session, candidate_id, project_id=who.project_id)
    run = runs.get(session, view.run_id)
    won: ChampionView | None = history.promotion_of(session, view.run_id, candidate_id)
    return {
        "section": "runs",
        "candidate": view,
        "problem": problems.get(session, view.problem_id),
        "run": run,
        "own": run.project_id == who.project_id,
        "won": won,
        "refused": _refused(session, view) if won is None else "",
        "tab": tab,
        "tabs": TABS,
    }


def _refused(session: Session, view: CandidateView) -> str:
    """Return in words why a confirmed Candidate was not promoted; "" where it was not confirmed."""
    if view.verdict is not Verdict.PASSED:
        return ""
    found = [one.evaluation for one in evaluations.list(session, view.id) if one.kind == "confirm"]
    return "; ".join(why_not(found[-1])) if found else ""
