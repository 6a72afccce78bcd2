"""Format results as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaluator.types import Admission, BaselineReport, BuildReport, Evaluation, Measurement, Ratio, Verdict
from evaluator.units import time_text

_SHOWN_EVIDENCE = (
    "line", "source_line", "index", "actual", "expected", "wrong_elements", "pattern", "origin", "message", "log",
    "trace",
)  # fmt: skip


def report(result: Evaluation | Admission | BaselineReport | BuildReport) -> str:
    """Return a short report for a person."""
    if isinstance(result, Evaluation):
        return "\n".join(_evaluation(result))
    if isinstance(result, Admission):
        return "\n".join(_admission(result))
    if isinstance(result, BaselineReport):
        return "\n".join(_baselines(result))
    return "\n".join(_build(result))


def _evaluation(result: Evaluation) -> Iterator[str]:
    yield f"{result.verdict} in stage {result.stage}: {result.reason}"
    if result.verdict is not Verdict.PASSED:
        for key in _SHOWN_EVIDENCE:
            if key in result.evidence:
                yield f"  {key}: {str(result.evidence[key])[:1500]}"
    if "domain" in result.evidence:
        yield f"  right on {result.evidence['domain']}"
    for measurement in result.measurements:
        baselines = ", ".join(f"{b.mode} {time_text(b.median_us)}" for b in measurement.baselines)
        own = f"{time_text(measurement.median_us)} a call"
        yield f"  {measurement.workload}: {own} ({baselines}){_roofline(measurement)}"
        yield from _third_opinion(result.evidence.get("third_opinion", {}).get(measurement.workload, {}))
        known = result.evidence.get("known_baselines", {}).get(measurement.workload)
        for mode, us in (known or measurement.diagnostics.get("known_baselines", {})).items():
            slow, counted = time_text(us["here_us"]), time_text(us["counted_us"])
            yield f"    {mode} took {slow} as compiled here; {counted} counts, as when baselines were timed"
        for adjustment in dict.fromkeys(map(str, measurement.adjustments)):
            yield f"    adjusted by {adjustment}"
    for ratio in result.speedups:
        if ratio.workload is None:
            yield f"  {_ratio(ratio)} against {ratio.against}"
    promotion = result.evidence.get("confirm")
    if isinstance(promotion, dict):
        word = "promote" if result.evidence.get("promote") else "do not promote"
        yield f"  {word}: bound {promotion.get('bound')} against threshold {promotion.get('threshold')}"
    if result.environment is not None and result.environment.threads is not None:
        threads = result.environment.threads
        yield f"  with {threads} CPU thread{'' if threads == 1 else 's'}"
    for one in result.evidence.get("other_threads", ()):
        speed = one["reason"]
        if "speedup" in one:
            speed = f"{one['speedup']:.3f}x ({one['low']:.3f} to {one['high']:.3f}) against fastest"
        yield f"  with {one['threads']} instead: {one['verdict']}, {speed}"
    for line in result.isolation:
        yield f"  not isolated: {line}"
    yield f"  took {sum(result.duration_s.values()):.2f} s"


def _third_opinion(told: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line on the plain loops of a confirmation; "again" is the Candidate once more."""
    parts = []
    for name, one in told.items():
        if name == "again":
            continue
        kernels = f", kernels {one['kernels_us']:.1f}" if "kernels_us" in one else ""
        parts.append(f"{name} {one['plain_us']:.1f} us{kernels}{' (disagrees)' if one['disagrees'] else ''}")
    if parts:
        yield f"    in a plain loop: {'; '.join(parts)}"


def _roofline(measurement: Measurement) -> str:
    if measurement.floor_us is None:
        return ""
    share = min(1.0, measurement.floor_us / measurement.median_us)
    return f"; {100 * share:.0f} % of the memory roofline ({time_text(measurement.floor_us)} at copy speed)"


def _ratio(ratio: Ratio) -> str:
    percent = round(ratio.interval.confidence * 100, 1)
    return f"{ratio.value:.3f}x ({percent:g} %: {ratio.interval.low:.3f} to {ratio.interval.high:.3f})"


def _admission(result: Admission) -> Iterator[str]:
    yield f"{result.verdict}: {result.reason}"
    if "domain" in result.evidence:
        sizes = ", ".join(f"{name}={value}" for name, value in result.evidence.get("sizes", {}).items())
        yield f"  kernels have to be right on {result.evidence['domain']}; sizes: {sizes or 'none has a name'}"
    for fact in result.facts:
        floor = "" if fact.floor_us is None else f", at least {time_text(fact.floor_us)} at copy speed"
        shapes = f"{', '.join(fact.inputs)} -> {', '.join(fact.outputs)}"
        yield f"  {fact.workload}: {shapes}; {fact.bytes_moved} bytes{floor}"


def _baselines(result: BaselineReport) -> Iterator[str]:
    for time in result.times:
        low, high = time.interval_us.low, time.interval_us.high
        yield f"  {time.workload}: {time.mode} {time_text(time.median_us)} ({time_text(low)} to {time_text(high)})"
    for mode, reason in result.skipped.items():
        yield f"  {mode} skipped: {reason}"
    yield f"  took {result.duration_s:.1f} s"


def _build(result: BuildReport) -> Iterator[str]:
    if result.evaluation is not None:
        yield from _evaluation(result.evaluation)
        return
    yield f"builds; signature {result.signature[:16]}"
    for name, value in result.resources.items():
        yield f"  {name}: {value}"
