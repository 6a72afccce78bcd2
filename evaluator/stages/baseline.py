"""Time the Baselines of a Problem: eager and torch.compile's modes.

Modes compile beside other work. The first report has what is ready soon; later ones have what compiled since.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from evaluator.child.protocol.layout import LayoutError
from evaluator.errors import ComparatorFailed, EvaluatorError
from evaluator.oracle.oracle import Oracle
from evaluator.stages.judge import Judge
from evaluator.stages.time_candidate import baseline_contender
from evaluator.stages.trial import secret_generator
from evaluator.subject import Subject
from evaluator.timing.bench import Bench
from evaluator.timing.contender import Contender
from evaluator.timing.protocol import Rules
from evaluator.types import BaselineReport, BaselineTime, DeviceKind, Problem, Workload

# How long the first report waits for torch.compile's default mode. A CPU compiles for as long as it judges.
_PATIENCE_S = {DeviceKind.CPU: 0.0, DeviceKind.CUDA: 15.0}
_SOON = ("eager", "compile")
_LOOK_S = 1.0  # of a later request, if nothing else is to be done


def baseline(judge: Judge, problem: Problem) -> BaselineReport:
    """Time every mode on every shown Workload of this device kind, in the same session.

    A mode that does not work is skipped with its reason. Raises EvaluatorError when not even eager can be timed.
    """
    return judge.with_retries(problem, lambda: _baseline(judge, problem, None, math.inf))


def baseline_so_far(
    judge: Judge, problem: Problem, known: BaselineReport | None, *, patient: bool = False
) -> BaselineReport:
    """Time the modes that are ready soon, and let the others compile: they are `pending`.

    With a `known` report, time its modes again with those that compiled since; return it as it is if there are none. A
    `patient` caller lets them compile for a moment, in which cases for the next Candidates are prepared.
    Raises EvaluatorError when not even eager can be timed.
    """
    if known is not None and not known.pending:
        return known
    patience_s = _PATIENCE_S[judge.backend.kind] if known is None else _LOOK_S if patient else 0.0
    return judge.with_retries(problem, lambda: _baseline(judge, problem, known, patience_s))


def _baseline(judge: Judge, problem: Problem, known: BaselineReport | None, patience_s: float) -> BaselineReport:
    start = time.perf_counter()
    comparators = judge.session.comparators
    skipped = dict(known.skipped) if known else {}
    modes = [mode for mode in comparators.modes() if mode not in skipped]
    shown = [workload for workload in problem.workloads_for(judge.backend.kind) if not workload.held_out]
    if known is None and patience_s != math.inf:
        comparators.hold()  # as in admission, which may have been long ago
    _prepare(judge, problem, shown, modes)
    if patience_s == math.inf:
        judge.session.await_compiled(problem, shown, modes, patience_s)
    else:
        _await(judge, problem, shown, modes if known else [mode for mode in _SOON if mode in modes], patience_s)
    ready = [mode for mode in modes if all(comparators.is_ready(problem, w, mode) for w in shown)]
    if known is not None and not set(ready) & set(known.pending):
        return known
    pending = tuple(mode for mode in modes if mode not in ready)
    rules = judge.protocol.baseline_so_far if pending else judge.protocol.baseline
    with judge.session.references.lend(problem) as reference:
        times = [
            one for workload in shown for one in _times(judge, problem, workload, ready, reference, skipped, rules)
        ]
    if not any(t.mode == "eager" for t in times):
        raise EvaluatorError(f"the eager baseline cannot be timed: {skipped.get('eager', 'no workload is shown')}")
    return BaselineReport(
        problem_hash=problem.hash,
        device=judge.device,
        environment=judge.environment,
        times=tuple(times),
        skipped=skipped,
        pending=pending,
        duration_s=round(time.perf_counter() - start, 3),
    )


def _await(judge: Judge, problem: Problem, shown: Sequence[Workload], modes: Sequence[str], patience_s: float) -> None:
    """Wait for modes to compile, and prepare cases for the next Candidates meanwhile."""
    comparators, end = judge.session.comparators, time.monotonic() + patience_s
    comparators.advance()
    while time.monotonic() < end and not all(comparators.is_ready(problem, w, m) for w in shown for m in modes):
        if not judge.check_stage.prepare_ahead(problem):
            judge.session.await_compiled(problem, shown, modes, end - time.monotonic())
        comparators.advance()


def _prepare(judge: Judge, problem: Problem, shown: Sequence[Workload], modes: Sequence[str]) -> None:
    """Begin to compile the modes on the Workloads where that has not begun."""
    begun = judge.session.comparators.is_begun
    missing = [workload for workload in shown if not all(begun(problem, workload, mode) for mode in modes)]
    if not missing:
        return
    with judge.session.references.lend(problem) as reference:
        for workload in missing:
            oracle = Oracle(problem, reference, workload.sizes, secret_generator())
            judge.session.comparators.prepare(problem, workload, modes, oracle)


def _times(
    judge: Judge,
    problem: Problem,
    workload: Workload,
    ready: Sequence[str],
    reference: Subject,
    skipped: dict[str, str],
    rules: Rules,
) -> list[BaselineTime]:
    oracle = Oracle(problem, reference, workload.sizes, secret_generator())
    contenders: list[Contender] = []
    for mode in ready:
        judge.tell(stage="baseline", mode=mode, workload=workload.name)
        try:
            contenders.append(baseline_contender(judge.session, problem, workload, mode, oracle))
        except (EvaluatorError, LayoutError) as fault:
            skipped[mode] = f"{workload.name}: {fault}"[:500]
    bench = Bench(judge.session, workload, oracle, contenders, protocol=judge.protocol)
    return _time(judge, bench, skipped, rules)


def _time(judge: Judge, bench: Bench, skipped: dict[str, str], rules: Rules) -> list[BaselineTime]:
    """Time the modes that work, without those that fail or are wrong, which happens with torch.compile."""
    try:
        with judge.session.exclusive():
            while True:
                try:
                    bench.run(rules)
                    return _with_code(bench, [bench.baseline_time(c.name) for c in bench.contenders])
                except ComparatorFailed as failure:
                    skipped[failure.name] = str(failure)[:500]
                    bench.leave_out(failure.name)
    finally:
        bench.close()


def _with_code(bench: Bench, times: list[BaselineTime]) -> list[BaselineTime]:
    """Return the times; the fastest has the code that torch.compile generated, for Proposers that have to beat it."""
    best = min(times, key=lambda one: one.median_us, default=None)
    if best is None or best.mode == "eager":
        return times
    code = next(c.subject for c in bench.contenders if c.name == best.mode).generated()
    return [replace(one, code=code) if one is best else one for one in times]
