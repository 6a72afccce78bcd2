"""An Evaluation stage by stage: result, duration and findings of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from db.views.rows import EvaluationView
from evaluator.types import Evaluation, Stage, Verdict

MOST_KINDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One stage. `state` is passed, failed or not reached."""

    name: str
    state: str
    took_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An Evaluation for people: its gates, the few findings worth reading first, and everything else as JSON."""

    id: str
    kind: str
    evaluation: Evaluation
    settled_at: str
    gates: tuple[GateView, ...]
    findings: tuple[tuple[str, str], ...]
    evidence: str
    why_not: str


def report(view: EvaluationView) -> Report:
    """Return the report of a stored Evaluation."""
    found = view.evaluation
    return Report(
        id=view.id,
        kind=view.kind,
        evaluation=found,
        settled_at=view.settled_at,
        gates=_gates(found),
        findings=tuple(_findings(found.evidence)),
        evidence=json.dumps(_plain(found.evidence), indent=2, ensure_ascii=False)[:100_000],
        why_not="; ".join(why_not(found)) if view.kind == "confirm" else "",
    )


def why_not(found: Evaluation) -> tuple[str, ...]:
    """Return in words what forbade the promotion of a confirmed Candidate; () where nothing did."""
    match found.evidence:
        case {"promote": False, "confirm": {"why_not": words}}:
            return tuple(str(word) for word in words)
    return ()


def _gates(found: Evaluation) -> tuple[GateView, ...]:
    shown = [stage for stage in Stage if stage.value in found.duration_s or stage is found.stage]
    gates = []
    for stage in shown:
        failed = stage is found.stage and found.verdict is not Verdict.PASSED
        gates.append(
            GateView(name=stage.value, state="failed" if failed else "passed", took_s=found.duration_s.get(stage.value))
        )
    return tuple(gates)


def _findings(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    match evidence.get("correctness"):
        case {"checked_calls": dict() as calls, **rest}:
            total = sum(int(n) for n in calls.values())
            lines.append(("Checked calls", f"{total}, on {_most_frequent(calls)}"))
            if isinstance(share := rest.get("worst_error_share"), int | float):
                lines.append(("Largest error", f"{100 * share:.1f} % of what is allowed"))
            if oracle := rest.get("oracle"):
                lines.append(("Oracle", str(oracle)))
    match evidence.get("confirm"):
        case {"bound": bound, "threshold": threshold, **rest}:
            lines.append(("99.9 % lower bound", f"{bound:.3f}× against {rest.get('against', 'fastest')}"))
            lines.append(("Needed for promotion", f"more than {threshold:.3f}×"))
            if isinstance(spread := rest.get("aa_spread"), int | float):
                lines.append(("Same kernel against itself", f"{100 * spread:.1f} % apart"))
            if pairs := rest.get("process_pairs"):
                lines.append(("Pairs of fresh processes", str(pairs)))
    return lines


def _most_frequent(calls: Mapping[str, Any]) -> str:
    """Return the kinds of inputs that were tried most often: "random values (40), a NaN (6), and 3 more kinds"."""
    ordered = sorted(calls.items(), key=lambda item: -int(item[1]))
    shown = ", ".join(f"{name} ({number})" for name, number in ordered[:MOST_KINDS])
    more = len(ordered) - MOST_KINDS
    return shown if more <= 0 else f"{shown}, and {more} more kind{'s' if more > 1 else ''}"


def flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values as rows: the path of names, and the value as text."""
    for name, inner in value.items():
        path = f"{before}, {name}" if before else str(name)
        if isinstance(inner, Mapping):
            yield from flat(inner, path)
        elif isinstance(inner, list | tuple) and inner:
            yield path, ", ".join(str(item) for item in inner)
        elif inner not in ("", None, [], ()):
            yield path, f"{inner:.4g}" if isinstance(inner, float) else str(inner)


def _plain(value: Any) -> Any:
    """Convert mappings and tuples to JSON values."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
