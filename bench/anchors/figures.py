"""Lines for people, and the figures of a whole table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

Entry = dict[str, Any]
LOSS = 0.98
TOLD_US = 12


def line(row: Entry) -> str:
    """Return a row's line: ours, its ratios, the attainable, and everybody's microseconds."""
    name = f"{row['row']:42}"
    if "error_of_row" in row:
        return f"{name} no result: {row['error_of_row']}"
    us = " ".join(f"{key} {value:.2f}" for key, value in sorted(row["us"].items(), key=lambda item: item[1])[:TOLD_US])
    if "ratios" not in row:
        said = row["notes"].get("ours", "no plan of ours is right")
        return f"{name} ours: nothing ({said[:90]}); {us} us; attainable {attainable_us(row):.2f} us"
    ours, found = row["ours"], row["ratios"]
    others = "".join(f", {key} {found[key]['value']:.2f}x" for key in ("Helion", "Liger") if key in found)
    return (
        f"{name} {row['us'][ours['name']]:9.2f} us {shown(found['baseline'])} {row['baseline']}{others}; "
        f"{100 * row['of_attainable']:.0f} % of {attainable_us(row):.2f} us; called "
        f"{row['called_ratio'] or float('nan'):.2f}x | {ours['strategy']} "
        f"{' '.join(f'{k}={v}' for k, v in ours['configuration'].items())} | {us}"
    )


def shown(value: Entry) -> str:
    """Return a ratio with its interval where it has one."""
    if "low" not in value:
        return f"{value['value']:.2f}x"
    return f"{value['value']:.3f}x ({value['low']:.3f} to {value['high']:.3f})"


def attainable_us(row: Entry) -> float:
    """Return the attainable microseconds on the row's card: an H200's, times the ratio of memory rates."""
    ceiling = row["ceiling"]
    slower = row.get("slower_memory", 1.0) if ceiling["bound"] == "memory" else 1.0
    return float(ceiling["attainable_us"] * slower)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean, 1 of nothing."""
    return statistics.geometric_mean(values) if values else 1.0


def ratio_of(row: Entry) -> float:
    """Return ours over the fastest baseline; 1 where nothing of ours is there: the baseline is the answer."""
    return float(row["ratios"]["baseline"]["value"]) if "ratios" in row else 1.0


def figures(rows: Sequence[Entry]) -> Entry:
    """Return the figures of the 37 op rows, of fused quantisation, and of everything else."""
    done = [row for row in rows if "error_of_row" not in row]
    table = [row for row in done if row["of_table"]]
    quantised = [row for row in done if row["row"].startswith("quantised/")]
    return {
        "rows": len(rows),
        "failed": [row["row"] for row in rows if "error_of_row" in row],
        "table": _some(table),
        "mirage": _some([row for row in table if row["row"].startswith("mirage/")]),
        "row_ops": _some([row for row in table if row["row"].startswith("rows/")]),
        "quantised": _some(quantised) | {"over_best_of_all": round(geometric_mean([_all(r) for r in quantised]), 3)},
    }


def _some(rows: Sequence[Entry]) -> Entry:
    ratios = {row["row"]: ratio_of(row) for row in rows}
    helion = [row["ratios"]["Helion"]["value"] for row in rows if "Helion" in row.get("ratios", {})]
    return {
        "rows": len(rows),
        "ours": sum("ratios" in row for row in rows),
        "geometric_mean": round(geometric_mean(list(ratios.values())), 3),
        "with_baseline_where_slower": round(geometric_mean([max(1.0, r) for r in ratios.values()]), 3),
        "attainable": round(geometric_mean([_room(row) for row in rows]), 3),
        "over_helion": round(geometric_mean(helion), 3) if helion else None,
        "helion_rows": len(helion),
        "at_90_percent": sum(row.get("of_attainable", 0.0) >= 0.9 for row in rows),
        "losses": {name: value for name, value in sorted(ratios.items(), key=lambda i: i[1]) if value < LOSS},
    }


def _room(row: Entry) -> float:
    if "baseline" not in row or "ceiling" not in row:
        return 1.0
    return max(1.0, float(row["us"][row["baseline"]]) / attainable_us(row))


def _all(row: Entry) -> float:
    """Return ours over the fastest of all comparators."""
    return min((float(value["value"]) for value in row["ratios"].values()), default=1.0) if "ratios" in row else 1.0


def figures_line(found: Entry) -> str:
    """Return the figures as one line."""
    parts = []
    for name in ("table", "mirage", "row_ops", "quantised"):
        some = found[name]
        if some["rows"]:
            text = f"{name}: {some['geometric_mean']:.3f}x over {some['rows']} rows ({some['ours']} with plans of ours"
            text += f"; attainable {some['attainable']:.2f}x; {some['at_90_percent']} at 90 % of it"
            text += f"; Helion {some['over_helion']:.2f}x on {some['helion_rows']}" if some["helion_rows"] else ""
            text += f"; losses {', '.join(f'{k} {v:.2f}' for k, v in some['losses'].items()) or 'none'})"
            parts.append(text)
    failed = f"; failed: {', '.join(found['failed'])}" if found["failed"] else ""
    return f"anchors: {'; '.join(parts) or 'no rows'}{failed}"
