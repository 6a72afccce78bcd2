"""Time every Baseline of a Problem once: eager and torch.compile's modes."""

from __future__ import annotations

import time
from dataclasses import replace

from evaluator.child.protocol.layout import LayoutError
from evaluator.errors import ChildFault, ComparatorFailed, EvaluatorError
from evaluator.oracle.oracle import Oracle
from evaluator.stages.judge import Judge
from evaluator.stages.time_candidate import baseline_contender
from evaluator.stages.trial import secret_generator
from evaluator.timing.bench import Bench
from evaluator.types import BaselineReport, BaselineTime, Problem


def baseline(judge: Judge, problem: Problem) -> BaselineReport:
    """Time every mode on every shown Workload of this device kind, in the same session.

    A mode that does not work is skipped with its reason. Raises EvaluatorError when not even eager can be timed.
    """
    return judge.with_retries(problem, lambda: _baseline(judge, problem))


def _baseline(judge: Judge, problem: Problem) -> BaselineReport:
    start = time.perf_counter()
    times: list[BaselineTime] = []
    skipped: dict[str, str] = {}
    generator = secret_generator()
    with judge.session.references.start(problem) as reference:
        for workload in problem.workloads_for(judge.backend.kind):
            if workload.held_out:
                continue
            oracle = Oracle(problem, reference, workload.sizes, generator)
            contenders = []
            for mode in judge.session.comparators.modes():
                try:
                    contenders.append(baseline_contender(judge.session, problem, workload, mode, oracle))
                except (ChildFault, LayoutError) as fault:
                    skipped[mode] = f"{workload.name}: {fault}"[:500]
            bench = Bench(judge.session, workload, oracle, contenders, protocol=judge.protocol)
            times += _time(judge, bench, skipped)
    if not any(t.mode == "eager" for t in times):
        raise EvaluatorError(f"the eager baseline cannot be timed: {skipped.get('eager', 'no workload is shown')}")
    return BaselineReport(
        problem_hash=problem.hash,
        device=judge.device,
        environment=judge.environment,
        times=tuple(times),
        skipped=skipped,
        duration_s=round(time.perf_counter() - start, 3),
    )


def _time(judge: Judge, bench: Bench, skipped: dict[str, str]) -> list[BaselineTime]:
    """Time the modes that work, without those that fail or are wrong, which happens with torch.compile."""
    try:
        with judge.session.exclusive():
            while True:
                try:
                    bench.run(judge.protocol.baseline)
                    return _with_code(bench, [bench.baseline_time(c.name) for c in bench.contenders])
                except ComparatorFailed as failure:
                    skipped[failure.name] = str(failure)[:500]
                    bench.leave_out(failure.name)
    finally:
        bench.close()


def _with_code(bench: Bench, times: list[BaselineTime]) -> list[BaselineTime]:
    """Return times, the fastest with what torch.compile generated for it: whoever wants to beat it should know it."""
    best = min(times, key=lambda one: one.median_us, default=None)
    if best is None or best.mode == "eager":
        return times
    code = next(c.subject for c in bench.contenders if c.name == best.mode).generated()
    return [replace(one, code=code) if one is best else one for one in times]
