"""The tables and the summary that the command line prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpwright.api.boards import ApiKey, LeaderboardEntry
from warpwright.api.judging import Candidate, Ratio
from warpwright.api.searching import Event, RunSummary
from warpwright.cli.summary import Summary
from warpwright.cli.units import interval_text, ratio_text, time_text


def table(*columns: str, title: str | None = None, right: Iterable[str] = ()) -> Table:
    """Return a table without lines; the columns named in `right` are aligned to the right."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    aligned = set(right)
    for column in columns:
        result.add_column(column, justify="right" if column in aligned else "left", overflow="fold")
    return result


def show_summary(console: Console, summary: Summary, *, saved: Path | None, dashboard: str) -> None:
    """Print the results of `optimize`: times, speedups, verdicts, seconds by stage, the file, and the dashboard."""
    console.print()
    console.print(Text(headline(summary), style="bold"), soft_wrap=True)
    if summary.rows:
        console.print(_times(summary))
    for line in _speedups(summary):
        console.print(line, markup=False, soft_wrap=True)
    console.print()
    if summary.verdicts:
        counts = sorted(summary.verdicts.items(), key=lambda item: -item[1])
        console.print("candidates by verdict:  " + "  ".join(f"{name} {count}" for name, count in counts))
    if summary.seconds_by_stage:
        spent = sorted(summary.seconds_by_stage.items(), key=lambda item: -item[1])
        console.print("time by stage:          " + "  ".join(f"{name} {seconds:.1f} s" for name, seconds in spent))
    if saved is not None:
        console.print(f"kernel file:            {saved}", markup=False, soft_wrap=True)
        console.print(f"check it elsewhere:     python {saved.name} --check", markup=False, soft_wrap=True)
    console.print(f"dashboard:              {dashboard}", markup=False, soft_wrap=True)


def _speedups(summary: Summary) -> list[str]:
    """Return a line for each comparison. A speedup over a Baseline that was overtaken is not called the fastest's."""
    eager, fastest, estimate = summary.speedup("eager"), summary.speedup("fastest"), summary.estimate
    lines = [f"against eager: {_with_interval(eager)}"] if eager is not None else []
    if fastest is not None and estimate is None:
        lines.append(f"against the fastest baseline: {_with_interval(fastest)}")
    elif fastest is not None:
        lines.append(f"against {summary.timed_against}, no longer the fastest baseline: {_with_interval(fastest)}")
    if estimate is not None:
        words = "an estimate, since that one compiled after this timing"
        lines.append(f"against the fastest baseline: about {_with_interval(estimate)}; {words}")
    return lines


def _with_interval(ratio: Ratio) -> str:
    percent = f"{ratio.interval.confidence * 100:g} % interval"
    return f"{ratio_text(ratio.value)}, {percent} {ratio_text(ratio.interval.low)} to {ratio_text(ratio.interval.high)}"


def headline(summary: Summary) -> str:
    """Return the outcome in a sentence or two. Without a champion it is the service's message, which gives advice."""
    run = summary.run
    if summary.improved:
        ratio = summary.speedup("fastest")
        gain = f", {ratio_text(ratio.value)} the fastest baseline" if ratio else ""
        return f"Confirmed champion{gain}."
    if summary.standing_champion is not None:
        return run.message or "The champion of an earlier run is still the fastest."
    reasons = {
        "no_improvement": "No kernel was confirmed to be faster than the fastest baseline.",
        "budget": "The budget ended before a kernel was confirmed to be faster than the fastest baseline.",
        "stagnated": "The search stopped finding better kernels, and none was confirmed to be faster.",
        "problem_refused": "The problem was refused.",
        "no_proposer": "No proposer gave a kernel.",
        "cancelled": "The run was cancelled.",
        "roofline_reached": "The kernel runs at the limit of memory bandwidth.",
    }
    text = reasons.get(run.end_reason or "", f"The run ended: {run.end_reason or run.status}.")
    searched = run.end_reason in ("no_improvement", "budget", "stagnated")
    return run.message if searched and run.message else f"{text} {run.message}".strip()


def _times(summary: Summary) -> Table:
    modes = list(dict.fromkeys(mode for row in summary.rows for mode in row.baselines_us))
    columns = [*modes, "kernel", "against fastest" if summary.estimate is None else "against the fastest then"]
    result = table("workload", *columns, right=columns)
    for row in summary.rows:
        times = [time_text(row.baselines_us[mode]) if mode in row.baselines_us else "" for mode in modes]
        result.add_row(row.workload, *times, time_text(row.kernel_us), _speedup(row.against_fastest))
    return result


def _speedup(ratio: Ratio | None) -> str:
    return interval_text(ratio) if ratio else ""


FOLDED = 24
"""Characters of a cell that count when a table is made to fit; the rest of it is folded."""


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, whole: str, spare: Sequence[str] = ()
) -> Table:
    """Return a table for so many characters. `spare` columns are left out, in this order, while it is too wide.

    An id (`whole`) stays in one piece, to be copied.
    """
    wide = {
        name: max(len(cell) if name == whole else min(len(cell), FOLDED) for cell in (name, *cells))
        for name, *cells in zip(columns, *rows, strict=True)
    }
    left = list(columns)
    for name in spare:
        if sum(wide[one] + 2 for one in left) - 2 <= width:
            break
        left.remove(name)
    result = table(*left, right=("#", "candidates"))
    for column in result.columns:
        column.no_wrap = column.header == whole
    for row in rows:
        result.add_row(*(cell for name, cell in zip(columns, row, strict=True) if name in left))
    return result


def leaderboard(champions: Iterable[LeaderboardEntry], width: int) -> Table:
    columns = ("problem", "device", "against fastest", "against eager", "baseline", "by", "run")
    rows = [
        (
            row.problem_name,
            row.device_name,
            _speedup(row.against_fastest),
            _speedup(row.against_eager),
            row.fastest_baseline,
            f"{row.model or row.proposer} ({row.language})",
            row.run_id,
        )
        for row in champions
    ]
    return fitted(columns, rows, width, whole="run", spare=("by", "against eager", "baseline", "device"))


def runs(items: Iterable[RunSummary], width: int) -> Table:
    """Return the table of runs. A tilde marks a speedup that was not confirmed."""
    columns = ("run", "problem", "device", "status", "ended", "against fastest", "candidates", "started")
    rows = [
        (
            run.id,
            run.problem_name,
            run.device_kind,
            run.status,
            run.end_reason or "",
            f"{'' if run.confirmed else '~'}{_speedup(run.speedup)}{', estimated' if run.outdated else ''}"
            if run.speedup
            else "",
            str(run.spend.candidates),
            run.created_at[:19],
        )
        for run in items
    ]
    return fitted(columns, rows, width, whole="run", spare=("candidates", "device", "started", "ended"))


def candidates(items: Iterable[Candidate], width: int, *, ended: bool) -> Table:
    """Return the table of candidates. Once their run has ended, those without a verdict get none."""
    columns = ("#", "candidate", "language", "by", "verdict", "against fastest", "reason")
    rows = []
    for item in sorted(items, key=lambda candidate: candidate.number):
        origin = "/".join(part for part in (item.proposer, item.operator, item.way) if part)
        waiting = "duplicate" if item.reason else "not judged" if ended else "in progress"
        verdict = f"{item.verdict or waiting}{' (confirmed)' if item.confirmed else ''}"
        reason = "" if item.verdict == "PASSED" else item.reason
        speedup = f"{_speedup(item.speedup)}{', estimated' if item.outdated else ''}"
        rows.append((str(item.number), item.id, item.language, origin, verdict, speedup, reason[:100]))
    return fitted(columns, rows, width, whole="candidate", spare=("language", "by", "reason"))


def keys(items: Iterable[ApiKey], width: int) -> Table:
    columns = ("key", "name", "prefix", "scope", "project", "created", "last used", "state")
    rows = []
    for item in items:
        ends = f"until {item.expires_at[:10]}" if item.expires_at else "active"
        state = f"revoked {item.revoked_at[:10]}" if item.revoked_at else ends
        used = (item.last_used_at or "never")[:19]
        prefix = f"{item.prefix}…"
        rows.append((item.id, item.name, prefix, item.scope, item.project_id, item.created_at[:10], used, state))
    return fitted(columns, rows, width, whole="key", spare=("prefix", "created", "last used", "project"))


def event_line(event: Event) -> str:
    """Return one event as one line."""
    shown = ", ".join(f"{key}={value}" for key, value in event.data.items() if isinstance(value, str | int | float))
    return f"{event.seq:>5}  {event.created_at[11:19]:8}  {event.kind:20}  {' '.join(shown.split())}"
