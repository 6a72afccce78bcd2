"""Run several judges on one GPU, each in a process of its own, as a service's workers do: they share the files."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.judge.bench import eager_only
from bench.rate.files import File
from bench.sampler import Sampler
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.serve import make_backend
from evaluator.stages.judge import Judge
from evaluator.types import Candidate, Problem, Verdict

_READY_S, _FILE_S = 120.0, 120.0


def candidate(one: File) -> Candidate:
    return Candidate(source=one.source, language=detect(one.source), proposer="bench")


def judge_file(judge: Judge, problem: Problem, one: File) -> dict[str, Any]:
    """Judge one file."""
    start = time.monotonic()
    found = judge.judge(problem, candidate(one), eager_only(judge, problem))
    wall_s = time.monotonic() - start
    timed = [sum(m.diagnostics["round_calls"]) * m.diagnostics["pairs"] // 2 for m in found.measurements]
    return {
        "outcome": f"{found.verdict}: {found.reason}"[:300],
        "passed": found.verdict is Verdict.PASSED,
        "wall_s": round(wall_s, 3),
        "stages_s": dict(found.duration_s),
        "timed_calls": min(timed, default=0),
    }


def _serve(pipe: Connection, device: str, sample: Path | None) -> None:
    """Judge files from the pipe until it ends; write the time by function to `sample`."""
    judge = Judge(make_backend(device))
    try:
        judge.warm()  # as in a running service; KernelBench has no equivalent
        sampler = Sampler(threading.get_ident()) if sample else None
        pipe.send("ready")
        while (one := pipe.recv()) is not None:
            pipe.send(judge_file(judge, read_problem(one.problem, "rate"), one))
        if sampler and sample:
            sampler.stop(sample)
    finally:
        judge.close()


class Work:
    """The files that are left.

    A judge continues with its problem, else begins a problem that no judge has, else helps with the problem that has
    most files left: its cache is per problem.
    """

    def __init__(self, some: Sequence[File]) -> None:
        self._left = list(some)
        self._lock = threading.Lock()
        self._begun: set[str] = set()

    def next(self, mine: str) -> File | None:
        """Return a file for a judge that has just judged one of problem `mine` ("": none yet)."""
        with self._lock:
            if not self._left:
                return None
            counts = Counter(one.problem for one in self._left)
            new = next((one.problem for one in self._left if one.problem not in self._begun), None)
            problem = mine if mine in counts else new or counts.most_common(1)[0][0]
            self._begun.add(problem)
            found = next(one for one in self._left if one.problem == problem)
            self._left.remove(found)
            return found


def judge_all(
    some: Sequence[File],
    device: str,
    judges: int,
    note: Callable[[File, dict[str, Any]], None],
    sample: Path | None = None,
) -> float:
    """Have every file judged by one of so many judges, and logged. Return the seconds from the first to the last file.

    The judges are ready before. The first one's time by function is written to `sample`. A judge that ends or does not
    reply in time raises EOFError or TimeoutError.
    """
    work = Work(some)
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for number in range(judges):
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, device, sample if number == 0 else None))
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)

    def lead(pipe: Connection) -> None:
        one = work.next("")
        while one is not None:
            pipe.send(one)
            note(one, _answer(pipe, _FILE_S))
            one = work.next(one.problem)

    try:
        for pipe in pipes:
            _answer(pipe, _READY_S)
        start = time.monotonic()
        with ThreadPoolExecutor(judges) as threads:
            for leading in [threads.submit(lead, pipe) for pipe in pipes]:
                leading.result()
        wall_s = time.monotonic() - start
        for pipe in pipes:
            pipe.send(None)
    finally:
        for process in processes:
            process.join(30)
            process.kill()
            process.join()
    return wall_s


def _answer(pipe: Connection, within_s: float) -> Any:
    if not pipe.poll(within_s):
        raise TimeoutError(f"a judge does not answer within {within_s:g} s")
    return pipe.recv()
