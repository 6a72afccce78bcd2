"""The standing Champion of every Problem on every device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from db.clock import iso
from db.tables.core import CandidateRow, ChampionRow, ProblemRow
from db.views.rows import LeaderboardEntry
from db.visible import problem_visible
from evaluator.schema import from_json
from evaluator.screening.family import Family
from evaluator.types import DeviceKind, Language, Ratio

Sort = Literal["speedup", "roofline", "newest", "problem"]
MOST_DEVICES = 200
TREND = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter: words of a Problem's name, its family, a device kind or a device, a language, a proposer.

    `proposer` is the name of a Proposer or of a model.
    """

    text: str = ""
    kind: str = ""
    device: str = ""
    language: str = ""
    proposer: str = ""
    family: str = ""

    @property
    def empty(self) -> bool:
        return self == Filter()


def rows(
    s: Session,
    project_id: str,
    *,
    limit: int = 100,
    problem_id: str | None = None,
    only: Filter = Filter(),
    sort: Sort = "speedup",
    after: str | None = None,
) -> tuple[LeaderboardEntry, ...]:
    """List own and public Problems, fastest first or as `sort` says; `after` is the last id of the previous page."""
    wanted: tuple[Any, ...] = (
        ChampionRow, ProblemRow.name, ProblemRow.family,
        CandidateRow.language, CandidateRow.proposer, CandidateRow.model,
    )  # fmt: skip
    query: Select[Any] = (
        select(*wanted)
        .join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        .join(CandidateRow, CandidateRow.id == ChampionRow.candidate_id)
        .where(problem_visible(project_id), ChampionRow.standing)
    )
    if problem_id is not None:
        query = query.where(ChampionRow.problem_id == problem_id)
    query = _sorted(_only(query, only), sort, after)
    return tuple(_entry(*row) for row in s.execute(query.limit(limit)))


def devices(s: Session, project_id: str) -> tuple[str, ...]:
    """Return the names of the devices that have a Champion."""
    query = (
        select(ChampionRow.device_name)
        .join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        .where(problem_visible(project_id), ChampionRow.standing)
        .distinct()
        .order_by(ChampionRow.device_name)
        .limit(MOST_DEVICES)
    )
    return tuple(s.scalars(query))


def trends(s: Session, entries: Sequence[LeaderboardEntry]) -> dict[str, tuple[float, ...]]:
    """Return the confirmed speedups that led to each of a page of entries, oldest first, by the entry's id."""
    latest = (
        select(
            ChampionRow.problem_id,
            ChampionRow.device_name,
            ChampionRow.speedup,
            func.row_number()
            .over(partition_by=(ChampionRow.problem_id, ChampionRow.device_name), order_by=ChampionRow.id.desc())
            .label("back"),
        )
        .where(ChampionRow.problem_id.in_({entry.problem_id for entry in entries}))
        .subquery()
    )
    found: dict[tuple[str, str], list[float]] = {}
    query = select(latest).where(latest.c.back <= TREND).order_by(latest.c.back.desc())
    for row in s.execute(query):
        found.setdefault((row.problem_id, row.device_name), []).append(row.speedup)
    return {entry.id: tuple(found.get((entry.problem_id, entry.device_name), ())) for entry in entries}


def _only(query: Select[Any], only: Filter) -> Select[Any]:
    for word in only.text.split()[:8]:
        query = query.where(ProblemRow.name.icontains(word, autoescape=True))
    if only.family:
        query = query.where(ProblemRow.family == only.family)
    if only.kind:
        query = query.where(ChampionRow.device_kind == only.kind)
    if only.device:
        query = query.where(ChampionRow.device_name == only.device)
    if only.language:
        query = query.where(CandidateRow.language == only.language)
    if only.proposer:
        query = query.where(or_(CandidateRow.proposer == only.proposer, CandidateRow.model == only.proposer))
    return query


def _sorted(query: Select[Any], sort: Sort, after: str | None) -> Select[Any]:
    """Sort, ties by id, from the entry after `after` on."""
    columns: dict[Sort, Any] = {
        "speedup": ChampionRow.speedup,
        "roofline": func.coalesce(ChampionRow.roofline, -1.0),
        "newest": ChampionRow.promoted_at,
        "problem": ProblemRow.name,
    }
    column = columns[sort]
    rising = sort == "problem"
    if after is not None:
        last = select(column).select_from(ChampionRow).join(ProblemRow, ProblemRow.id == ChampionRow.problem_id)
        value = last.where(ChampionRow.id == after).correlate(None).scalar_subquery()
        beyond = column > value if rising else column < value
        query = query.where(or_(beyond, and_(column == value, ChampionRow.id > after)))
    return query.order_by(column.asc() if rising else column.desc(), ChampionRow.id)


def _entry(champion: ChampionRow, name: str, family: str, language: str, proposer: str, model: str) -> LeaderboardEntry:
    return LeaderboardEntry(
        id=champion.id,
        problem_id=champion.problem_id,
        problem_name=name,
        family=Family(family),
        device_kind=DeviceKind(champion.device_kind),
        device_name=champion.device_name,
        run_id=champion.run_id,
        candidate_id=champion.candidate_id,
        language=Language(language),
        proposer=proposer,
        model=model,
        fastest_baseline=champion.fastest_baseline,
        roofline=champion.roofline,
        against_fastest=from_json(Ratio, champion.against_fastest),
        against_eager=None if champion.against_eager is None else from_json(Ratio, champion.against_eager),
        confirmed_at=iso(champion.promoted_at) or "",
    )
