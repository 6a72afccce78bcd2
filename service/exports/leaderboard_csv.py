"""The leaderboard as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from db.views.rows import LeaderboardEntry
from service.exports.base import Format

MOST_ROWS = 5000
# A spreadsheet takes what begins like this for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = (
    "problem", "family", "device_kind", "device", "speedup", "low", "high", "confidence", "baseline", "against_eager",
    "roofline", "language", "proposer", "model", "confirmed_at", "problem_id", "run_id", "candidate_id",
)  # fmt: skip


def build(rows: Sequence[LeaderboardEntry]) -> str:
    """Return the table under one row of names. Text that a spreadsheet would take for a formula gets an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_record(row) for row in rows)
    return text.getvalue()


def _record(row: LeaderboardEntry) -> list[Any]:
    ratio, eager = row.against_fastest, row.against_eager
    values: list[Any] = [
        row.problem_name, row.family.value, row.device_kind.value, row.device_name,
        ratio.value, ratio.interval.low, ratio.interval.high,
        ratio.interval.confidence, row.fastest_baseline, eager.value if eager is not None else "", row.roofline or "",
        row.language.value, row.proposer, row.model, row.confirmed_at, row.problem_id, row.run_id, row.candidate_id,
    ]  # fmt: skip
    return [_harmless(value) if isinstance(value, str) else value for value in values]


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


FORMAT: Format[Sequence[LeaderboardEntry]] = Format(
    about="Comma-separated values under one row of names.",
    media_type="text/csv; charset=utf-8",
    extension="csv",
    build=build,
)
