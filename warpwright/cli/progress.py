"""The progress of a Run for a person: a bar with the best speedup on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from warpwright.api.searching import Event
from warpwright.cli.units import ratio_text

REPORTED_OUTCOMES = ("malformed", "endpoint_error", "deadline", "refused")
"""Outcomes of a Proposal that are worth a line."""

ENDS_DOING = ("problem.admitted", "baseline.timed", "evaluation.settled", "run.ended")


def worth_a_line(note: Mapping[str, Any]) -> bool:
    """Return True for a note that is printed where there is no bar: of a Workload's pairs, two."""
    return "pair" not in note or note["pair"] in (1, 1 + note["pairs"] // 2)


class RunProgress:
    """The counts and the best speedup of a Run, from its events so far."""

    def __init__(self) -> None:
        self.phase = "queued"
        self.doing = ""
        self.created = 0
        self.proposers: dict[int, str] = {}
        self.verdicts: Counter[str] = Counter()
        self.speedups: dict[str, float] = {}
        self.judged: set[str] = set()
        self.estimated: set[str] = set()
        self.champion: float | None = None

    def count(self, event: Event) -> str | None:
        """Count an event; return a line for a person, or None."""
        data = event.data
        if event.kind in ENDS_DOING:
            self.doing = ""
        match event.kind:
            case "run.status":
                self.phase = str(data.get("status", self.phase))
            case "run.progress" if self.phase == "ended":  # work that began before the end
                return None
            case "run.progress":
                self.doing = str(data.get("text", ""))
                return self.doing if worth_a_line(data) else None
            case "candidate.confirming":
                return f"{self._label(data)}: confirming in new processes, on held-out workloads"
            case "problem.admitted":
                return "Reference accepted: it runs in the sandbox, and trivial wrong kernels fail its checks."
            case "problem.refused":
                return f"Reference refused: {data.get('reason', '')}"
            case "baseline.timed":
                return _baselines(data) + self._rescaled(data)
            case "candidate.created":
                self.created += 1
                if data.get("number") is not None:
                    self.proposers[int(data["number"])] = str(data.get("proposer") or "")
            case "proposal.settled" if data.get("outcome") in REPORTED_OUTCOMES:
                return f"proposal {data.get('number')}: {data['outcome']} ({data.get('detail', '')})"
            case "proposer.stopped":
                return f"{data.get('proposer', '?')} is not asked again in this run{_stopped(data)}"
            case "evaluation.settled":
                return self._settled(data)
            case "champion.promoted":
                self.champion = float(data["speedup"])
                return f"{self._label(data)}: CHAMPION, confirmed at {ratio_text(self.champion)} the fastest baseline"
            case "run.learned":
                return "\n".join(f"learned: {lesson}" for lesson in data.get("lessons", ()))
            case "run.ended":
                self.phase = "ended"
                return f"ended: {data.get('reason', data.get('status', ''))}"
        return None

    def _settled(self, data: Mapping[str, Any]) -> str | None:
        verdict, kind = str(data.get("verdict", "?")), str(data.get("kind") or "judge")
        value = data.get("speedup")
        if kind == "confirm":
            return self._confirmed(data, verdict)
        if kind != "judge":
            return None
        label = self._label(data)
        again, before = label in self.judged, self.best
        self.judged.add(label)
        self.verdicts[verdict] += not again
        self.speedups.pop(label, None)
        self.estimated.discard(label)
        if verdict != "PASSED":
            return f"{label}: {verdict} ({data.get('reason', '')})"
        if value is None:
            return f"{label}: PASSED, not timed"
        self.speedups[label] = float(value)
        if data.get("outdated"):
            self.estimated.add(label)
            return f"{label}: PASSED, about {ratio_text(value)} a baseline that came meanwhile, an estimate"
        if again:
            return f"{label}: {ratio_text(value)} a baseline that was timed later"
        if "slower: " in str(data.get("reason", "")):
            return f"{label}: {data['reason']}"
        best = ", best so far" if before is None or value > before else ""
        return f"{label}: PASSED, {ratio_text(value)} the fastest baseline{best}"

    def _rescaled(self, data: Mapping[str, Any]) -> str:
        """Make the speedups so far estimates over a Baseline that overtook theirs; return that in words."""
        factor = data.get("rescaled")
        if factor is None or not self.speedups:
            return ""
        self.speedups = {label: value * factor for label, value in self.speedups.items()}
        self.estimated = set(self.speedups)
        return f" Speedups so far are estimates over it: the best is about {ratio_text(self.best or 0.0)}."

    @property
    def best(self) -> float | None:
        """The best speedup of those judged so far."""
        return max(self.speedups.values(), default=None)

    def _confirmed(self, data: Mapping[str, Any], verdict: str) -> str | None:
        """Return the outcome of a confirmation; None for a promotion, which has an event of its own."""
        if data.get("promoted"):
            return None
        at = data.get("confirmed")
        seen = verdict if at is None else f"confirmed at {ratio_text(at)} the fastest baseline"
        why = "; ".join(data.get("why_not") or ()) or str(data.get("reason", ""))
        return f"{self._label(data)}: {seen}, not promoted: {why}"

    def _label(self, data: Mapping[str, Any]) -> str:
        number = data.get("number")
        maker = self.proposers.get(int(number), "") if number is not None else ""
        return f"#{number} {maker}".strip() if number is not None else str(data.get("candidate_id", "?"))

    def _standing(self, best: float) -> str:
        return "estimated" if any(self.speedups[label] == best for label in self.estimated) else "unconfirmed"

    @property
    def summary(self) -> str:
        """The text after the bar."""
        best = "none yet" if self.best is None else f"{ratio_text(self.best)}, {self._standing(self.best)}"
        if self.champion is not None:
            best = f"{ratio_text(self.champion)}, confirmed"
        now = f" · {self.doing}" if self.doing else ""
        return f"{self.phase} · {self.created} candidates, {self.verdicts['PASSED']} passed · best {best}{now}"


def _stopped(data: Mapping[str, Any]) -> str:
    """Return the operator, if it is only one of the model's, and the last answer's fault."""
    operator = data.get("operator")
    return f"{f' to {operator}' if operator else ''}: {data.get('detail') or data.get('fault', '')}"


def _baselines(data: Mapping[str, Any]) -> str:
    """Return a line on the Baselines so far: "Baselines timed on H100: eager is the fastest; compile is compiling."."""
    modes = list(dict.fromkeys(str(one["mode"]) for one in (data.get("fastest") or {}).values()))
    pending = [str(mode) for mode in data.get("pending") or ()]
    line = f"Baselines timed on {data.get('device', 'this device')}"
    if modes:
        line += f": {' and '.join(modes)} {'is' if len(modes) == 1 else 'are'} the fastest"
    if pending:
        line += f" so far; {' and '.join(pending)} still {'compiles' if len(pending) == 1 else 'compile'}"
    return line + "."


class ProgressDisplay:
    """Shows each event of a Run, within a `with` block: in a bar on a terminal, as lines elsewhere."""

    def __init__(self, console: Console, *, seconds: float | None, quiet: bool = False) -> None:
        self.progress = RunProgress()
        self._console, self._seconds, self._quiet = console, seconds, quiet
        self._began = time.monotonic()
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=seconds)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, event: Event) -> None:
        line = self.progress.count(event)
        elapsed = time.monotonic() - self._began
        if self._bar is not None:
            done = min(elapsed, self._seconds) if self._seconds else None
            self._bar.update(self._task, description=self.progress.summary, completed=done)
        if line and not self._quiet:
            self._console.print(f"{elapsed:6.1f} s  {line}", markup=False, soft_wrap=True)
