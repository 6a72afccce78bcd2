"""Events of a run as lines for an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line_of(kind: str, data: Mapping[str, Any]) -> str:
    """Return one line for an event, or "" for one that says nothing new to an agent."""
    match kind:
        case "run.progress":
            return str(data.get("text", ""))
        case "run.status":
            return f"the run is {data.get('status')}"
        case "problem.admitted":
            return "the reference is accepted"
        case "problem.refused":
            return f"the reference is refused: {data.get('reason', '')}"
        case "baseline.timed":
            modes = sorted({str(one["mode"]) for one in (data.get("fastest") or {}).values()})
            late = "; speedups so far are estimates over it" if data.get("rescaled") else ""
            return f"baselines timed: {', '.join(modes)} to beat{late}" if modes else "baselines are being timed"
        case "candidate.created":
            return f"candidate {data.get('number')} ({data.get('proposer', '')}) was made"
        case "candidate.confirming":
            return f"candidate {data.get('number')}: confirming in new processes"
        case "evaluation.settled":
            return f"candidate {data.get('number')}: {_verdict(data)}"
        case "champion.promoted":
            return f"candidate {data.get('number')} is the champion: {data['speedup']:.2f} times the fastest baseline"
        case "run.ended":
            return f"the run ended: {data.get('reason')}"
    return ""


def _verdict(data: Mapping[str, Any]) -> str:
    speedup = data.get("speedup")
    if data.get("verdict") != "PASSED":
        return f"{data.get('verdict')} ({data.get('reason', '')})"
    if speedup is None:
        return "PASSED"
    words = f"PASSED, {'estimated at ' if data.get('outdated') else ''}{speedup:.2f} times the fastest baseline"
    return words + ", not promoted" * (data.get("promoted") is False)
