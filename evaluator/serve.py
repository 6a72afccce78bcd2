"""Serve a long-lived judge on standard input and output: one JSON request per line, one JSON reply per line.

Request: {"id", "op": admit|baseline|build|judge|confirm|describe|ping, "problem", "candidate", "champion", "baseline",
"quick", "best", "patient", "whole", "notes"}. A "whole" baseline waits until every mode has compiled.
Reply: {"id", "ok": true, "result": ...} or {"id", "ok": false, "error": "..."}. Where "notes" is true, any number of
{"id", "note": {...}} may come before it: what the judge is doing now, for people who wait. The end of standard input
ends the judge and every child.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TextIO, cast

import torch

from evaluator.devices.absent_gpu import AbsentGpu
from evaluator.devices.base import DeviceBackend
from evaluator.devices.cpu import CpuBackend
from evaluator.devices.pools_ahead import PoolsAhead
from evaluator.errors import EvaluatorError
from evaluator.schema import SchemaError, from_json, to_json
from evaluator.stages.admit import admit
from evaluator.stages.baseline import baseline, baseline_so_far
from evaluator.stages.build import build
from evaluator.stages.confirm import confirm
from evaluator.stages.judge import Judge, silent
from evaluator.stages.other_threads import with_other_threads
from evaluator.timing.protocol import STANDARD, TimingProtocol
from evaluator.types import BaselineReport, Candidate, Problem

log = logging.getLogger("evaluator.serve")


def make_backend(device: str, ahead: PoolsAhead | None = None) -> DeviceBackend:
    """Return the backend for "cpu" or "cuda:N", which takes over pools `ahead`, or "sm_90", which only builds.

    Raise CageError for an unusable device, ValueError for other names.
    """
    kind, _, ordinal = device.partition(":")
    if kind == "cpu" and not ordinal:
        cpu = CpuBackend()
        cpu.step_aside()
        return cpu
    if kind == "cuda" and (not ordinal or ordinal.isdigit()):
        from evaluator.devices.cuda import CudaBackend  # noqa: PLC0415  needs a driver

        return cast(DeviceBackend, CudaBackend(int(ordinal or 0), ahead=ahead))
    if kind.startswith("sm_"):
        absent = AbsentGpu(kind)
        absent.step_aside()
        return absent
    raise ValueError(f"device {device!r}: use cpu or cuda:N")


def serve(
    device: str, protocol: TimingProtocol = STANDARD, *, builds: bool = False, ahead: PoolsAhead | None = None
) -> int:
    """Reply to requests until standard input ends, and return the exit status.

    With `builds`, the requests to get ready for are those of op `build`. `ahead` has pools of children that start.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    # Only replies may reach standard output: all other output goes to standard error.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        judge = Judge(make_backend(device, ahead), protocol=protocol)
        judge.compiles_ahead = True
    except (EvaluatorError, ValueError) as error:
        log.error("%s", error)
        return 3
    try:
        judge.warm(builds=builds)
        for line in _requests(judge):
            if line.strip():
                _write(channel, answer(judge, line, partial(_write, channel)))
            if judge.lost:
                log.error("the device was lost; the parent process has to start another judge")
                return 3
    except BrokenPipeError:
        return 0
    finally:
        judge.close()
        with contextlib.suppress(OSError):  # the reader is gone
            channel.close()
    return 0


def _requests(judge: Judge) -> Iterator[str]:
    """Yield lines of standard input. While none comes, prepare for later ones."""
    while True:
        while not select.select([sys.stdin], [], [], 0.0)[0] and judge.use_spare_time():
            pass
        line = sys.stdin.readline()
        if not line:
            return
        yield line


def _write(channel: TextIO, message: Mapping[str, Any]) -> None:
    channel.write(json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n")
    channel.flush()


def answer(judge: Judge, line: str, write: Callable[[Mapping[str, Any]], None] = lambda note: None) -> dict[str, Any]:
    """Return the reply to one request; `write` its notes. An unforeseen fault of ours ends the process, and its parent
    starts another."""
    ident: object = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise SchemaError("a request must be a JSON object")
        ident = request.get("id")
        if request.get("notes") is True:
            judge.tell = lambda **note: write({"id": ident, "note": note})
        return {"id": ident, "ok": True, "result": _perform(judge, request)}
    except (EvaluatorError, ValueError, RecursionError, torch.OutOfMemoryError) as error:
        return {"id": ident, "ok": False, "error": f"{type(error).__name__}: {error}"[:4000]}
    finally:
        judge.tell = silent  # a note after the reply would be taken for one of the next request


def _perform(judge: Judge, request: Mapping[str, Any]) -> Any:
    op = request.get("op")
    if op == "ping":
        return {}
    if op == "describe":
        parts = {"device": judge.device, "environment": judge.environment, "isolation": judge.isolation()}
        return {key: to_json(value) for key, value in parts.items()}
    problem = from_json(Problem, request.get("problem"))
    if op != "build" and isinstance(judge.backend, AbsentGpu):
        raise SchemaError(f"{op}: this judge only builds, for a GPU that is elsewhere")
    if op == "admit":
        return to_json(admit(judge, problem))
    known = None if request.get("baseline") is None else from_json(BaselineReport, request["baseline"])
    if op == "baseline" and request.get("whole") is True:
        return to_json(baseline(judge, problem))
    if op == "baseline":
        judge.expected = problem
        return to_json(baseline_so_far(judge, problem, known, patient=request.get("patient") is True))
    candidate = from_json(Candidate, request.get("candidate"))
    if op == "build":
        return to_json(build(judge, problem, candidate))
    if op == "judge":
        quick, best = request.get("quick") is True, from_json(dict[str, float], request.get("best") or {})
        return to_json(judge.judge(problem, candidate, known, quick=quick, best=best))
    if op == "confirm":
        champion = None if request.get("champion") is None else from_json(Candidate, request["champion"])
        found = confirm(judge, problem, candidate, champion, known)
        return to_json(with_other_threads(judge, problem, candidate, found))
    raise SchemaError(f"unknown op {str(op)[:40]!r}")
