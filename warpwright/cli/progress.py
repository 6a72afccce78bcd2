"""What a person sees while a Run is under way: a bar with the best so far, or lines where there is no terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from warpwright.api.searching import Event

TROUBLE = ("malformed", "endpoint_error", "deadline", "refused")
"""Outcomes of a Proposal that a person should hear of."""


class Tally:
    """What the events of a Run add up to so far."""

    def __init__(self) -> None:
        self.phase = "queued"
        self.created = 0
        self.makers: dict[int, str] = {}
        self.verdicts: Counter[str] = Counter()
        self.best: float | None = None
        self.champion: float | None = None

    def take(self, event: Event) -> str | None:
        """Count an event in; returns a line worth telling a person, if it is one."""
        data = event.data
        match event.kind:
            case "run.status":
                self.phase = str(data.get("status", self.phase))
            case "problem.admitted":
                return "The reference is sound: it runs in the cage and no null solution passes for it."
            case "problem.refused":
                return f"The reference is refused: {data.get('reason', '')}"
            case "baseline.timed":
                return f"Baselines are timed on {data.get('device', 'this device')}."
            case "candidate.created":
                self.created += 1
                if data.get("number") is not None:
                    self.makers[int(data["number"])] = str(data.get("proposer") or "")
            case "proposal.settled" if data.get("outcome") in TROUBLE:
                return f"proposal {data.get('number')}: {data['outcome']} ({data.get('detail', '')})"
            case "evaluation.settled":
                return self._settled(data)
            case "champion.promoted":
                self.champion = float(data["speedup"])
                return f"{self._who(data)}: CHAMPION, confirmed {self.champion:.2f}x the fastest baseline"
            case "run.learned":
                return "\n".join(f"learned: {lesson}" for lesson in data.get("lessons", ()))
            case "run.ended":
                return f"ended: {data.get('reason', data.get('status', ''))}"
        return None

    def _settled(self, data: Mapping[str, Any]) -> str | None:
        verdict, kind = str(data.get("verdict", "?")), str(data.get("kind") or "judge")
        value = data.get("speedup")
        if kind == "confirm":
            return f"{self._who(data)}: confirmation {verdict} ({data.get('reason', '')})"
        if kind != "judge":
            return None
        self.verdicts[verdict] += 1
        if verdict != "PASSED":
            return f"{self._who(data)}: {verdict} ({data.get('reason', '')})"
        if value is None:
            return f"{self._who(data)}: PASSED, not timed here"
        better = self.best is None or value > self.best
        if better:
            self.best = float(value)
        return f"{self._who(data)}: PASSED, {value:.2f}x the fastest baseline{', best so far' if better else ''}"

    def _who(self, data: Mapping[str, Any]) -> str:
        number = data.get("number")
        maker = self.makers.get(int(number), "") if number is not None else ""
        return f"#{number} {maker}".strip() if number is not None else str(data.get("candidate_id", "?"))

    @property
    def summary(self) -> str:
        """The words beside the bar."""
        best = "none yet" if self.best is None else f"{self.best:.2f}x, unconfirmed"
        if self.champion is not None:
            best = f"{self.champion:.2f}x, confirmed"
        return f"{self.phase} · {self.created} candidates, {self.verdicts['PASSED']} passed · best {best}"


class Watch:
    """`with Watch(console, seconds) as watch: watch.take(event)`. A bar on a terminal, lines elsewhere."""

    def __init__(self, console: Console, *, seconds: float | None, quiet: bool = False) -> None:
        self.tally = Tally()
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

    def take(self, event: Event) -> None:
        line = self.tally.take(event)
        elapsed = time.monotonic() - self._began
        if self._bar is not None:
            done = min(elapsed, self._seconds) if self._seconds else None
            self._bar.update(self._task, description=self.tally.summary, completed=done)
        if line and not self._quiet:
            self._console.print(f"{elapsed:6.1f} s  {line}", markup=False, soft_wrap=True)
