"""One row in a process of its own: compile, look, tune, measure. Started by bench.anchors; prints a JSON object a line.

The process compiles beside others, and has the GPU alone where it measures (turns.py). It says `alone` when a turn
begins and `done` when it ends, so that its parent can end a turn that hangs, and at last the row's result.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from bench.anchors.baselines import OTHERS, Baselines, Late, alarm, share_autotuning
from bench.anchors.clock import Rotation, ratio, state_of
from bench.anchors.figures import attainable_us
from bench.anchors.ours import Ours, Plan, end_if_broken
from bench.anchors.rows import CEILINGS, Row, all_rows, copied, rows_of
from bench.anchors.turns import Turns, turns_of_device
from bench.anchors.workload import Oracle, Workload, Wrong

FINALISTS, CALLED_ROUNDS, SLOW = 3, 9, 4.0
Call = Callable[..., Any]


def tell(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


class RowBench:
    """The measurement of one row."""

    def __init__(self, row: Row, options: argparse.Namespace) -> None:
        self.row = row
        self.options = options
        self.device = options.device
        self.turns: Turns = turns_of_device()
        self.spent: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.errors: dict[str, float] = {}
        self.replays: dict[str, Any] = {}
        self.plain: dict[str, Call] = {}

    def run(self) -> dict[str, Any]:
        workload = Workload(self.row, self.device, small=self.options.quick and self.device == "cpu")
        with self._timed("ours_compiled"):
            ours = self._ours(workload)
        baselines = Baselines(workload)
        with self._timed("baselines_compiled"):
            if self.device == "cuda":
                share_autotuning(self.turns)
            baselines.prepare(self.options.modes, self.options.helion, self.options.mode_s)
        self.notes |= baselines.missing
        _free()
        if ours is not None and not self.options.no_tuning:
            with self._alone("looked"):
                rotation = Rotation(workload.model, workload.inputs, self.device)
                self._look(ours, ours.plans, rotation)
                del rotation
            _free()
            with self._timed("neighbours_compiled"):
                found = self._neighbours(ours)
        else:
            found = [] if ours is None else ours.plans
        with self._alone("measured"):
            return self._measure(workload, ours, found, baselines)

    # ---- steps

    def _ours(self, workload: Workload) -> Ours | None:
        try:
            ours = Ours(workload, self.options.plans)
        except Exception as error:  # noqa: BLE001  what the synthesiser cannot do is a result
            self.notes["ours"] = f"{type(error).__name__}: {str(error)[:300]}"
            return None
        if not ours.plans:
            self.notes["ours"] = "the synthesiser has no plan"
            return None
        self._compile(ours, ours.plans, self.options.plans_s)
        return ours

    def _compile(self, ours: Ours, plans: Iterator[Plan] | list[Plan], seconds: float) -> list[Plan]:
        done: list[Plan] = []
        try:
            with alarm(seconds):
                for plan in plans:
                    ours.compile(plan)
                    done.append(plan)
        except Late:
            pass
        return done

    def _neighbours(self, ours: Ours) -> list[Plan]:
        steps = (plan for plan, _ in zip(ours.neighbours(), range(self.options.neighbours), strict=False))
        return self._compile(ours, steps, self.options.neighbours_s)

    def _look(self, ours: Ours, plans: list[Plan], rotation: Rotation) -> None:
        ends = time.monotonic() + self.options.look_s
        for plan in plans:
            if time.monotonic() > ends:
                plan.error = plan.error or "no time to look at it"
                continue
            if plan.key in self.options.skip:
                plan.error = "it ended the process before"
                continue
            tell(state="plan", plan=plan.key)
            with torch.no_grad():
                ours.look(plan, rotation)
        tell(state="plan", plan="")

    def _measure(
        self, workload: Workload, ours: Ours | None, found: list[Plan], baselines: Baselines
    ) -> dict[str, Any]:
        rotation = Rotation(workload.model, workload.inputs, self.device)
        oracle = workload.oracle()
        _free()  # the graphs have a pool of their own
        with torch.no_grad():
            size = workload.bytes
            for name, calls, plain in baselines.calls(rotation):
                self._contender(name, calls, plain, rotation, oracle)
            winner = None
            if ours is not None:
                self._look(ours, found, rotation)
                winner = self._finalists(ours, rotation, oracle)
            samples = rotation.rounds(self._worth(rotation), self.options.rounds_s)
            called = self._called(rotation)
        return self._result(samples, called, winner, size, rotation)

    def _contender(
        self, name: str, calls: Callable[[], list[Call]], plain: Call, rotation: Rotation, oracle: Oracle
    ) -> None:
        try:
            self.errors[name] = oracle.check(plain(*oracle.inputs), strict=False)
            made = calls()
            self.replays[name] = rotation.capture(made)
            self.plain[name] = made[0]
        except Wrong as error:
            self.notes[name] = f"wrong: {error}"
        except Exception as error:  # noqa: BLE001  one contender's failure is a result of the bench
            self.notes[name] = f"{type(error).__name__}: {str(error)[:200]}"
            end_if_broken(error)

    def _finalists(self, ours: Ours, rotation: Rotation, oracle: Oracle) -> dict[str, Plan]:
        """Admit the fastest right Plans to the rounds."""
        admitted: dict[str, Plan] = {}
        state = state_of(ours.workload.model)
        for plan in ours.ranked():
            name = f"ours {len(admitted) + 1}"
            model = ours.workload.with_state(plan.module.ModelNew, {k: t.data for k, t in state.items()})
            try:
                self.errors[name] = oracle.check(model(*oracle.inputs), strict=True)
            except Wrong as error:
                self.notes[f"{plan.title[:150]}"] = f"wrong: {error}"
                continue
            calls = ours.calls(plan, rotation)
            self.replays[name] = rotation.capture(calls)
            self.plain[name] = calls[0]
            admitted[name] = plan
            if len(admitted) == FINALISTS:
                break
        broken = [p for p in ours.plans if p.error]
        if broken:
            self.notes["broken plans"] = f"{len(broken)}; {broken[0].title[:80]}: {broken[0].error}"
        return admitted

    def _worth(self, rotation: Rotation) -> dict[str, Any]:
        """Return the replays without those that are several times slower than the fastest; their look is kept."""
        looks = {name: rotation.look_us(replay) for name, replay in self.replays.items()}
        self.slow = {name: look for name, look in looks.items() if look > SLOW * min(looks.values())}
        return {name: replay for name, replay in self.replays.items() if name not in self.slow}

    def _called(self, rotation: Rotation) -> dict[str, float]:
        names = [name for name in self.plain if name not in self.slow]
        samples: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(CALLED_ROUNDS):
            for name in names:
                samples[name].append(rotation.called_us(self.plain[name]))
        return {name: statistics.median_high(found) for name, found in samples.items()}

    # ---- the result

    def _result(
        self,
        samples: dict[str, list[float]],
        called: dict[str, float],
        winner: dict[str, Plan] | None,
        size: int,
        rotation: Rotation,
    ) -> dict[str, Any]:
        median = {name: statistics.median_high(found) for name, found in samples.items()}
        median |= self.slow
        ours = [name for name in median if name.startswith("ours ")]
        torch_own = [name for name in median if name not in ours and not name.startswith(OTHERS)]
        ceiling = CEILINGS.get(self.row.name) or copied(size)
        result: dict[str, Any] = {
            "row": self.row.name, "of_table": self.row.of_table, "bytes": size, "sets": rotation.count,
            "ceiling": {"floor_us": ceiling.floor_us, "attainable_us": ceiling.attainable_us, "bound": ceiling.bound},
            "slower_memory": self.options.slower_memory,
            "us": {name: round(value, 3) for name, value in median.items()},
            "called_us": {name: round(value, 2) for name, value in called.items()},
            "error": self.errors, "notes": self.notes, "spent_s": self.spent, "quick": self.options.quick,
        }  # fmt: skip
        if torch_own:
            result["baseline"] = min(torch_own, key=median.__getitem__)
        if not ours or not torch_own:
            return result
        best = min(ours, key=median.__getitem__)
        plan = (winner or {})[best]
        result["ours"] = {"name": best, "strategy": plan.strategy, "configuration": plan.configuration}
        result["source"] = plan.source
        result["ratios"] = self._ratios(best, samples, median, result["baseline"])
        result["called_ratio"] = _called_ratio(called, best, torch_own)
        result["of_attainable"] = round(attainable_us(result) / median[best], 4)
        return result

    def _ratios(
        self, best: str, samples: dict[str, list[float]], median: dict[str, float], baseline: str
    ) -> dict[str, Any]:
        """Return other / ours for the fastest of torch's own, and for Helion and Liger."""
        found = {}
        for title, name in (("baseline", baseline), *((other, other) for other in OTHERS if other in median)):
            if name in samples and best in samples:
                found[title] = ratio(samples[best], samples[name])
            else:
                found[title] = {"value": round(median[name] / median[best], 3)}
        return found

    # ---- turns

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent[name] = round(time.monotonic() - began, 2)

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        with self._timed(f"{name}_with_wait"), self.turns.alone():
            tell(state="alone")
            with self._timed(name):
                yield
                if self.device == "cuda":
                    torch.cuda.synchronize()
            tell(state="done")


def _called_ratio(called: dict[str, float], best: str, torch_own: list[str]) -> float | None:
    others = [called[name] for name in torch_own if name in called]
    return round(min(others) / called[best], 3) if others and best in called else None


def _free() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def options_of(text: str) -> argparse.Namespace:
    found = argparse.Namespace(**json.loads(text))
    found.helion = Path(found.helion) if found.helion else None
    return found


def main() -> None:
    name, path, text = sys.argv[1:4]
    torch.set_num_threads(2)
    rows = list(rows_of(Path(path))) if path else all_rows()
    row = next(row for row in rows if row.name == name)
    tell(result=RowBench(row, options_of(text)).run())


if __name__ == "__main__":
    main()
