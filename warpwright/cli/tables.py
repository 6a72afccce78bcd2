"""The tables that the command line prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpwright.api.boards import ApiKey, LeaderboardEntry
from warpwright.api.judging import Candidate, Ratio
from warpwright.api.searching import Event, Run
from warpwright.cli.summary import Summary


def table(*columns: str, title: str | None = None, right: Iterable[str] = ()) -> Table:
    """A plain table; the columns named in `right` are numbers."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    numbers = set(right)
    for column in columns:
        result.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return result


def show_summary(console: Console, summary: Summary, *, saved: Path | None, dashboard: str) -> None:
    """The end of `optimize`: times, speedups, verdicts, where the time went, the file, and how to see more."""
    console.print()
    console.print(Text(headline(summary), style="bold"), soft_wrap=True)
    if summary.rows:
        console.print(_times(summary))
    for against in ("eager", "fastest"):
        ratio = summary.speedup(against)
        if ratio is not None:
            name = "the fastest baseline" if against == "fastest" else against
            interval = ratio.interval
            percent = f"{interval.confidence * 100:g} %"
            console.print(
                f"against {name}: {ratio.value:.2f}x, {percent} interval {interval.low:.3f} to {interval.high:.3f}",
                markup=False,
            )
    console.print()
    if summary.verdicts:
        counts = sorted(summary.verdicts.items(), key=lambda item: -item[1])
        console.print("candidates by verdict:  " + "  ".join(f"{name} {count}" for name, count in counts))
    if summary.seconds_by_stage:
        spent = sorted(summary.seconds_by_stage.items(), key=lambda item: -item[1])
        console.print("where the time went:    " + "  ".join(f"{name} {seconds:.1f} s" for name, seconds in spent))
    if saved is not None:
        console.print(f"kernel file:            {saved}", markup=False, soft_wrap=True)
        console.print(f"verify it anywhere:     python {saved.name} --check", markup=False, soft_wrap=True)
    console.print(f"dashboard:              {dashboard}", markup=False, soft_wrap=True)


def headline(summary: Summary) -> str:
    """The outcome in a sentence or two; without a champion the service's own words, which give advice."""
    run = summary.run
    if summary.improved:
        ratio = summary.speedup("fastest")
        gain = f", {ratio.value:.2f}x the fastest baseline" if ratio else ""
        return f"Confirmed champion{gain}."
    if summary.standing is not None:
        return run.message or "The champion of an earlier run still stands."
    reasons = {
        "no_improvement": "No kernel was confirmed to be faster than the fastest baseline.",
        "budget": "The budget ended before a kernel was confirmed to be faster than the fastest baseline.",
        "stagnated": "The search stopped finding better kernels, and none was confirmed to be faster.",
        "problem_refused": "The problem was refused.",
        "no_proposer": "There was nobody to ask for kernels.",
        "cancelled": "The run was cancelled.",
        "roofline_reached": "The kernel runs at what memory allows.",
    }
    text = reasons.get(run.end_reason or "", f"The run ended: {run.end_reason or run.status}.")
    searched = run.end_reason in ("no_improvement", "budget", "stagnated")
    return run.message if searched and run.message else f"{text} {run.message}".strip()


def _times(summary: Summary) -> Table:
    modes = list(dict.fromkeys(mode for row in summary.rows for mode in row.baselines_us))
    numbers = [*(f"{mode} us" for mode in modes), "kernel us", "against fastest"]
    result = table("workload", *numbers, right=numbers)
    for row in summary.rows:
        times = [f"{row.baselines_us[mode]:.1f}" if mode in row.baselines_us else "" for mode in modes]
        result.add_row(row.workload, *times, f"{row.kernel_us:.1f}", _short(row.against_fastest))
    return result


def _short(ratio: Ratio | None) -> str:
    return f"{ratio.value:.2f}x ({ratio.interval.low:.2f} to {ratio.interval.high:.2f})" if ratio else ""


def leaderboard(champions: Iterable[LeaderboardEntry]) -> Table:
    result = table("problem", "device", "against fastest", "against eager", "baseline", "by", "run")
    for row in champions:
        result.add_row(
            row.problem_name,
            row.device_name,
            _short(row.against_fastest),
            _short(row.against_eager),
            row.fastest_baseline,
            f"{row.model or row.proposer} ({row.language})",
            row.run_id,
        )
    return result


def runs(items: Iterable[Run]) -> Table:
    result = table("run", "problem", "device", "status", "ended", "candidates", "started", right=("candidates",))
    for run in items:
        result.add_row(
            run.id,
            run.problem_id,
            run.device_kind,
            run.status,
            run.end_reason or "",
            str(run.spend.candidates),
            run.created_at[:19],
        )
    return result


def candidates(items: Iterable[Candidate]) -> Table:
    result = table("#", "candidate", "language", "by", "verdict", "against fastest", "reason", right=("#",))
    for item in sorted(items, key=lambda candidate: candidate.number):
        origin = "/".join(part for part in (item.proposer, item.operator) if part)
        verdict = f"{item.verdict or '…'}{' (confirmed)' if item.confirmed else ''}"
        reason = "" if item.verdict == "PASSED" else item.reason
        result.add_row(str(item.number), item.id, item.language, origin, verdict, _short(item.speedup), reason[:100])
    return result


def keys(items: Iterable[ApiKey]) -> Table:
    result = table("key", "name", "begins", "scope", "project", "made", "last used", "state")
    for item in items:
        ends = f"until {item.expires_at[:10]}" if item.expires_at else "in use"
        state = f"revoked {item.revoked_at[:10]}" if item.revoked_at else ends
        used = (item.last_used_at or "never")[:19]
        begins = f"{item.prefix}…"
        result.add_row(item.id, item.name, begins, item.scope, item.project_id, item.created_at[:10], used, state)
    return result


def event_line(event: Event) -> str:
    """One event on one line."""
    shown = ", ".join(f"{key}={value}" for key, value in event.data.items() if isinstance(value, str | int | float))
    return f"{event.seq:>5}  {event.created_at[11:19]:8}  {event.kind:20}  {shown}"[:240]
