"""The table of anchors: its rows, shards, figures, and processes that crash, hang or end in time."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.anchors.children import Limits, Pool
from bench.anchors.clock import ratio
from bench.anchors.figures import figures, figures_line, line
from bench.anchors.rows import CEILINGS, Row, all_rows, chosen, copied
from bench.anchors.turns import Turns


def test_rows_are_those_of_the_record() -> None:
    names = [row.name for row in all_rows()]
    assert len(set(names)) == len(names)
    assert set(CEILINGS) <= set(names)
    assert sum(row.of_table for row in all_rows()) == 37
    assert sum(name.startswith("quantised/") for name in names) == 6


def test_shards_part_the_rows() -> None:
    shards = [chosen([], f"{number}/3") for number in (1, 2, 3)]
    assert sorted(row.name for shard in shards for row in shard) == sorted(row.name for row in all_rows())
    assert [row.name for row in chosen(["rows/rope"], "1/1")] == ["rows/rope_4x(32+8)x2048x128"]
    with pytest.raises(SystemExit, match="--shard 4/3"):
        chosen([], "4/3")
    with pytest.raises(SystemExit, match="--row unknown"):
        chosen(["unknown"], "1/1")


def test_copies_lie_between_measured_sizes() -> None:
    assert copied(63_963_136).attainable_us == 17.23
    assert 5.51 < copied(20_000_000).attainable_us < 9.53
    assert copied(2_000_000_000).attainable_us > 400


def test_a_ratio_is_paired_and_has_an_interval() -> None:
    ours = [10.0 + number % 3 for number in range(40)]
    found = ratio(ours, [value * 1.5 for value in ours])
    assert found == {"value": 1.5, "low": 1.5, "high": 1.5, "rounds": 40}
    spread = ratio([10.0] * 41, [9.0 + number / 20 for number in range(41)])
    assert spread["low"] < spread["value"] == 1.0 < spread["high"]


def _row(name: str, value: float | None, of_table: bool = True) -> dict[str, Any]:
    row: dict[str, Any] = {
        "row": name, "of_table": of_table, "us": {"eager": 20.0, "ours 1": 10.0}, "baseline": "eager", "notes": {},
        "ceiling": {"attainable_us": 9.5, "floor_us": 9.0, "bound": "memory"},
    }  # fmt: skip
    if value is not None:
        row["ours"] = {"name": "ours 1", "strategy": "rows", "configuration": {"TILE": 1}}
        row["ratios"] = {"baseline": {"value": value, "low": value - 0.01, "high": value + 0.01}}
        row |= {"called_ratio": 1.0, "of_attainable": 0.95}
    return row


def test_figures_count_what_nothing_of_ours_computes() -> None:
    rows = [_row("rows/a", 4.0), _row("rows/b", None), _row("kb/c", 0.5), {"row": "kb/d", "error_of_row": "killed"}]
    found = figures(rows)
    assert found["table"]["geometric_mean"] == round(2.0 ** (1 / 3), 3)
    assert found["table"]["with_baseline_where_slower"] == round(4.0 ** (1 / 3), 3)
    assert found["table"]["losses"] == {"kb/c": 0.5}
    assert found["failed"] == ["kb/d"]
    assert "losses kb/c 0.50" in figures_line(found)
    assert "killed" in line(rows[-1])
    assert "ours: nothing" in line(rows[1])


CHILD = """
import json, sys, time
def tell(**fields):
    print(json.dumps(fields), flush=True)
name, skip = sys.argv[1], sys.argv[2:]
print("a library's own words", flush=True)
tell(state="alone")
if name == "hangs":
    time.sleep(60)
tell(state="done")
if name == "crashes" or (name == "bad plan" and skip != ["p"]):
    tell(state="plan", plan="p" if name == "bad plan" else "")
    sys.exit("broken")
if name == "slow":
    time.sleep(60)
tell(result={"row": name, "skip": skip})
"""


def run_pool(
    names: Sequence[str], tmp_path: Path, budget_s: float = 30.0, limits: Limits | None = None
) -> dict[str, Any]:
    rows = [Row(name, tmp_path, {"name": name}) for name in names]
    told: dict[str, Any] = {}

    def command(row: Row, skip: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", CHILD, row.name, *skip]

    pool = Pool(command, tmp_path, 4, time.monotonic() + budget_s, limits or Limits())
    pool.run(rows, lambda row: told.update({row["row"]: row}))
    return told


def test_a_row_that_crashes_or_hangs_costs_only_itself(tmp_path: Path) -> None:
    told = run_pool(["good", "crashes", "hangs", "bad plan"], tmp_path, limits=Limits(turn_s=0.2))
    assert told["good"] == {"row": "good", "skip": []}
    assert told["bad plan"] == {"row": "bad plan", "skip": ["p"]}  # once more without that plan
    assert "broken" in told["crashes"]["error_of_row"]
    assert "held the device" in told["hangs"]["error_of_row"]


def test_the_budget_ends_what_runs_and_starts_nothing_more(tmp_path: Path) -> None:
    told = run_pool(["slow"] + ["good"] * 8, tmp_path, budget_s=0.0)
    assert told == {}
    told = run_pool(["slow"], tmp_path, budget_s=0.3)
    assert told["slow"]["error_of_row"] == "no time left in the budget"


def test_who_measures_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_LOCK_DIR", str(tmp_path))
    turns, order, begun = Turns("test"), list[str](), threading.Event()

    def use() -> None:
        begun.set()
        with Turns("test").shared():
            order.append("used")

    other = threading.Thread(target=use)
    with turns.alone():
        other.start()
        begun.wait()
        with turns.shared():  # what the holder itself does is within its turn
            order.append("measured")
    other.join()
    assert order == ["measured", "used"]


def test_options_travel_as_json() -> None:
    from bench.anchors.__main__ import CHILD_OPTIONS, child_options, parser

    given = json.loads(child_options(parser().parse_args(["--helion", "."])))
    assert set(CHILD_OPTIONS) <= set(given)
    assert Path(given["helion"]).is_absolute()
