"""Say what rows of `bench.cpu` show."""

from __future__ import annotations

import math
from typing import Any


def ratio(row: dict[str, Any]) -> list[float] | None:
    """Return a row's ratio to the fastest Baseline with its interval, geometric means over Workloads."""
    if judgement := row.get("judged"):
        return list(judgement["ratio"]) if "ratio" in judgement else None
    fastest = [min(one["ratios"].values()) for one in row.get("rows", ()) if "ratios" in one]
    if not fastest:
        return None
    return [math.exp(sum(math.log(one[k]) for one in fastest) / len(fastest)) for k in range(3)]


def line(row: dict[str, Any]) -> str:
    found = ratio(row)
    told = f"{found[0]:5.2f} ({found[1]:.2f} to {found[2]:.2f})" if found else f"   no ratio: {_why(row)}"
    times = " | ".join(
        f"{one['workload']} " + " ".join(f"{name.split('-')[0]} {us:.1f}" for name, us in one["us"].items())
        for one in row.get("rows", ())
    )
    load = "/".join(f"{x:.1f}" for x in row.get("load", ()))
    return f"{row['problem']:20} {row['threads']} {told}  {times}  load {load}  {row.get('strategy', '')}"


def _why(row: dict[str, Any]) -> str:
    return str(row.get("error") or row.get("judged", {}).get("reason") or row.get("why") or row.get("wrong"))[:200]


def figures(rows: list[dict[str, Any]]) -> str:
    """Say, for each number of threads, the geometric mean and how many rows are not behind."""
    told = []
    for threads in sorted({r["threads"] for r in rows}):
        found = [(r["problem"], ratio(r)) for r in rows if r["threads"] == threads]
        values = [value[0] for _, value in found if value]
        behind = [name for name, value in found if value is None or value[0] < 1]
        mean = math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")
        told.append(
            f"threads {threads}: geometric mean {mean:.2f} over {len(values)}; {len(found) - len(behind)} of"
            f" {len(found)} at least as fast; behind or without: {', '.join(behind) or 'none'}"
        )
    return "\n".join(told)
