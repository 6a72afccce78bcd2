"""The results of a judged kernel in words: for the author of the next one, whether a model or an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evaluator.schema import to_json
from evaluator.types import DeviceKind, Evaluation, Language, Problem, Ratio, Verdict
from prompts import times
from prompts.budget import clip
from prompts.library import fill
from prompts.material import ParentNote

EVIDENCE_CHARACTERS = 3000
TEXT_CHARACTERS = 1500
_SAME_FOR_ALL_PASSED = frozenset({"checked_calls", "oracle", "skipped", "worst_error_share"})
_BINDING = re.compile(r"libpython|python3|libtorch_python|_ctypes|libffi|_multiarray|.*cpython-|ld-linux")


def describe_results(
    evaluation: Evaluation,
    problem: Problem,
    device_kind: DeviceKind,
    language: Language,
    *,
    estimate: Ratio | None = None,
) -> str:
    """Return what a repair of this kernel needs: verdict, times, evidence. It names no held-out Workload.

    `estimate` is the speedup over a Baseline that came after the Evaluation.
    """
    shown = {one.name for one in problem.workloads_for(device_kind) if not one.held_out}
    parent = ParentNote(
        source="",
        language=language,
        verdict=evaluation.verdict.value,
        stage=evaluation.stage.value,
        reason=evaluation.reason,
        evidence=evaluation.evidence,
        resources=evaluation.resources,
        measurements=evaluation.measurements,
        ratios=tuple(one for one in evaluation.speedups if one.against == "fastest")
        if estimate is None
        else (estimate,),
        outdated=estimate is not None,
    )
    secret = {workload.name for workload in problem.workloads} - shown
    return fill("results", relatives=(), **results(parent, shown=shown, secret=secret, floors={}))


def results(
    parent: ParentNote, *, shown: Collection[str], secret: Collection[str], floors: Mapping[str, float]
) -> dict[str, Any]:
    """Return the values of the templates "parent" and "results", but for `number` and `relatives`."""
    found = times.rows(parent.measurements, parent.ratios, shown, floors)
    said, error_share = _parent_evidence(parent)
    evidence, resources = (_evidence(_visible(one, secret)) for one in (said, _resources(parent.resources)))
    return {
        "parent": parent,
        "headline": times.headline(parent.ratios),
        "rows": found,
        "busy": times.was_disturbed(found),
        "error_share": error_share,
        "why_not": _why_not(parent),
        "evidence": evidence,
        "resources": resources,
    }


_SAID_OTHERWISE = ("sanitizer", "seconds", "promote", "confirm", "unchecked")  # it found nothing; `_why_not`


def _why_not(parent: ParentNote) -> tuple[str, ...]:
    """Return in words why a parent that was confirmed was not promoted; () where it was, or was not confirmed."""
    decision = parent.evidence.get("confirm")
    if parent.evidence.get("promote") is not False or not isinstance(decision, Mapping):
        return ()
    return tuple(str(word) for word in decision.get("why_not", ()))


def _parent_evidence(parent: ParentNote) -> tuple[Mapping[str, Any], float | None]:
    """Return a parent's evidence and its share of the allowed error, without facts that hold for all that passed."""
    correctness = parent.evidence.get("correctness")
    if parent.verdict != Verdict.PASSED or not isinstance(correctness, Mapping):
        return parent.evidence, None
    kept = {key: value for key, value in correctness.items() if key not in _SAME_FOR_ALL_PASSED}
    told = {key: value for key, value in parent.evidence.items() if key not in _SAID_OTHERWISE}
    return {**told, "correctness": kept}, correctness.get("worst_error_share")


def _resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return resources with time shares by file: a symbol is only the nearest export, which misleads."""
    kept = {key: value for key, value in resources.items() if key not in ("ran", "operations", "no counters")}
    if isinstance(kept.get("kernels"), list | tuple):
        kept["kernels"] = _kernels(kept["kernels"])
    operations = resources.get("operations")
    if isinstance(operations, Mapping):
        kept["operations"] = {name: n for name, n in operations.items() if not name.startswith("aten.empty")}
    seen = resources.get("ran")
    if not isinstance(seen, Mapping):
        return kept
    shares: dict[str, float] = {}
    for place, share in seen.items():
        file = place.partition(": ")[0]
        where = "Python and what binds it, the judge's loop included" if _BINDING.match(file) else file
        shares[where] = round(shares.get(where, 0.0) + float(share), 3)
    return {**kept, "share of time seen, all workloads": shares}


_COUNTED = {
    "registers": "registers", "spills": "spilled registers", "stack_bytes": "bytes of stack",
    "shared_bytes": "bytes of shared memory", "num_warps": "warps", "num_stages": "stages",
}  # fmt: skip


def _kernels(compiled: Sequence[Any]) -> dict[str, str]:
    """Return a line for each kernel, over all that it was compiled for: "56 to 255 registers, 4 warps"."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in compiled:
        if isinstance(one, Mapping):
            by_name.setdefault(str(one.get("name")), []).append(one)
    return {
        name: ", ".join(filter(None, (_span([one.get(key) for one in same], words) for key, words in _COUNTED.items())))
        for name, same in by_name.items()
    }


def _span(values: Sequence[Any], words: str) -> str:
    known = [value for value in values if type(value) is int]
    if not any(known):
        return ""
    least, most = min(known), max(known)
    return f"{least} {words}" if least == most else f"{least} to {most} {words}"


def _visible(value: Any, secret: Collection[str]) -> Any:
    """Return evidence without the names of hidden Workloads and without empty values."""
    if isinstance(value, Mapping):
        kept = {key: _visible(item, secret) for key, item in value.items() if key not in secret}
        return {key: item for key, item in kept.items() if item not in ([], {}, "", None)}
    if isinstance(value, list | tuple):
        return [_visible(item, secret) for item in value if not (isinstance(item, str) and item in secret)]
    return value


def _evidence(value: Mapping[str, Any]) -> str:
    """Return evidence as indented JSON, with long texts shortened in their middle."""
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
