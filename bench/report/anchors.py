"""Compute the outcomes of the table of anchors from its record."""

from __future__ import annotations

from bench.anchors.figures import LOSS, figures, ratio_of
from bench.report.records import Entry, entries


def anchors(record: str, part: str = "table") -> str:
    """Return the geometric mean of a part of the table, then each row's ratio to its fastest baseline."""
    rows = [row for row in entries(record) if "row" in row]
    some = figures(rows)[part]
    text = f"**{some['geometric_mean']:.2f}x** over {some['rows']} rows, {some['ours']} with kernels of ours"
    text += f" (attainable {some['attainable']:.2f}x; {some['at_90_percent']} at 90 % of it)"
    if some["helion_rows"]:
        text += f"; {some['over_helion']:.2f}x Helion's on {some['helion_rows']} rows"
    losses = ", ".join(f"{name} {value:.2f}" for name, value in some["losses"].items())
    return f"{text}; below {LOSS}: {losses or 'none'}"


def anchor_rows(record: str, prefix: str) -> str:
    """Return a line of the rows whose names begin with `prefix`: ratio with interval, share of the attainable."""
    return "; ".join(_row(row) for row in entries(record) if row.get("row", "").startswith(prefix))


def _row(row: Entry) -> str:
    name = row["row"].partition("/")[2]
    if "error_of_row" in row:
        return f"{name} no result"
    if "ratios" not in row:
        return f"{name} no kernel of ours"
    found = row["ratios"]["baseline"]
    interval = f" ({found['low']:.2f} to {found['high']:.2f})" if "low" in found else ""
    return f"{name} **{ratio_of(row):.2f}**{interval}, {100 * row['of_attainable']:.0f} %"
