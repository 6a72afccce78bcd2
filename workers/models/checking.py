"""A look at an answer before it costs a place in the queue: does it build, and is it new?"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from db.views.work import ProposeWork
from evaluator.languages import detect
from evaluator.schema import SchemaError, from_json, to_json
from evaluator.types import BuildReport, Candidate, DeviceKind, Verdict
from prompts.budget import clip
from runtime.logs import get_logger
from runtime.settings import Settings
from workers.deadline import Deadline
from workers.errors import JudgeFault
from workers.judge_process import JudgeProcess

LEAST_S, MOST_S = 10.0, 90.0
LOG_CHARACTERS = 2500
REPEATED = "it is the same program as an earlier answer: take another algorithm, blocking or layout"

log = get_logger(__name__)


class Check(Protocol):
    """Looks at a source; returns what is wrong with it, for its model, or None."""

    def refusal(self, work: ProposeWork, source: str, deadline: Deadline) -> str | None: ...


class BuildCheck:
    """Builds answers with a judge of its own, one at a time; also for a GPU that is elsewhere, if its facts are known.

    A fault of ours refuses nothing: the build stage will tell. The judge's child ends with the thread that started it,
    so all requests come from one thread.
    """

    def __init__(self, settings: Settings, dev: Path = Path("/dev")) -> None:
        self._settings = settings
        self._has_gpu = any(dev.glob("nvidia[0-9]*"))
        self._asked: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._judges: dict[str, JudgeProcess] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def refusal(self, work: ProposeWork, source: str, deadline: Deadline) -> str | None:
        """Return the build's error, or that the program is not new; None for a source that may go on."""
        seconds = deadline.remaining_s / 2  # for the turn, too: answers come in bursts
        device = self._device(work)
        if device is None or seconds < LEAST_S:
            return None
        candidate = Candidate(source=source, language=detect(source))
        if candidate.hash in work.tried:
            return REPEATED
        future = self._ask(lambda: self._build(device, work, candidate, min(MOST_S, seconds)))
        try:
            found = future.result(seconds)
        except (JudgeFault, OSError, ValueError, NotInTime) as fault:
            future.cancel()
            log.warning("answer.not_checked", error=str(fault) or "not in time")
            return None
        return REPEATED if found.evaluation is None and found.signature in work.tried else told(found)

    def _ask(self, request: Callable[[], BuildReport]) -> Future[BuildReport]:
        future: Future[BuildReport] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, name="build-check", daemon=True)
                self._thread.start()
        self._asked.put((request, future))
        return future

    def _serve(self) -> None:
        while True:
            request, future = self._asked.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(request())
            except (JudgeFault, SchemaError, OSError, ValueError) as error:
                future.set_exception(error)

    def _device(self, work: ProposeWork) -> str | None:
        """Return the device to build for, as the judge names it; None for a GPU that is unknown yet."""
        if work.device_kind is DeviceKind.CPU:
            return "cpu"
        if self._has_gpu:
            return self._settings.gpu_device
        capability = str(work.device_facts.get("capability") or "").replace(".", "")
        return f"sm_{capability}" if capability.isdigit() else None

    def _build(self, device: str, work: ProposeWork, candidate: Candidate, seconds: float) -> BuildReport:
        if device not in self._judges:
            hidden = {endpoint.api_key_env for endpoint in self._settings.models if endpoint.api_key_env}
            command = self._settings.judge_command
            self._judges[device] = JudgeProcess(device, command=command, builds=True, hidden=hidden)
        result = self._judges[device].request(
            "build", deadline_s=seconds, problem=to_json(work.problem), candidate=to_json(candidate)
        )
        return from_json(BuildReport, result)


def told(report: BuildReport) -> str | None:
    """Return a refused build's reason and log in words; None for one that passed, or a fault of ours."""
    found = report.evaluation
    if found is None and (compiler := report.resources.get("compile_error")):
        return f"{Verdict.BUILD_ERROR.value}: {clip(str(compiler), LOG_CHARACTERS)}"
    if found is None or found.verdict is Verdict.INTERNAL_ERROR:
        return None
    evidence = {key: value for key, value in found.evidence.items() if value not in (None, "", [], {}) and key != "log"}
    compiler = str(found.evidence.get("log") or "")
    parts = [f"{found.verdict.value}: {found.reason}"]
    parts += [json.dumps(to_json(evidence), ensure_ascii=False)] * bool(evidence)
    parts += [clip(compiler, LOG_CHARACTERS)] * bool(compiler)
    return "\n".join(parts)
