"""Answers that are of no use, told apart, and the setting to change in words."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from evolution.arms import STOP_AFTER
from evolution.types import Fault
from prompts import ReplyError
from runtime.models import ModelEndpoint
from workers.models.chat import Reply

PROBES = 2
"""So many calls at once go to an endpoint that has given a Run no useful answer yet."""
_MOST_RUNS = 1024


def explained(error: ReplyError, reply: Reply, endpoint: ModelEndpoint) -> ReplyError:
    """Return a reply's fault with its cause: that of the answer's form, if it has one, else the parser's."""
    fault = error.fault
    if reply.fault is not None and (fault is not Fault.TOO_LONG or not reply.text):
        fault = reply.fault
    words = _words(fault, reply, endpoint)
    return ReplyError(words or str(error), fault)


def _words(fault: Fault, reply: Reply, endpoint: ModelEndpoint) -> str:
    name = f"of endpoint {endpoint.name!r}"
    match fault:
        case Fault.THOUGHTS_ONLY if reply.truncated and reply.limit < endpoint.max_output_tokens:
            return (
                f"the model only thought: its thoughts took all of the {reply.limit} output tokens that the run's "
                f"budget still paid for: raise the budget, or let it think less ({_effort(endpoint)})"
            )
        case Fault.THOUGHTS_ONLY if reply.truncated:
            return (
                f"the model only thought: its thoughts took all of its {reply.limit} output tokens: raise "
                f"max_output_tokens {name}, or let it think less ({_effort(endpoint)})"
            )
        case Fault.THOUGHTS_ONLY:
            return (
                f"the model only thought, and gave no answer ({reply.usage.output_tokens} output tokens): let it think "
                f"less ({_effort(endpoint)}), or check the template that its server applies"
            )
        case Fault.REFUSED:
            return f"the model refused: {reply.said or 'it gave no reason'}: use another model for this problem"
        case Fault.FILTERED:
            return f"the endpoint's content filter stopped the answer ({reply.said}): change the filter, or the model"
        case Fault.TOOL_CALL:
            return (
                f"the model called a tool ({reply.said}) instead of answering, and none was offered: switch tools off "
                f'for it, as with body {{"tool_choice": "none"}} {name}'
            )
        case Fault.EMPTY:
            return f"the reply is empty (finish reason: {reply.said or 'none'}): check the model and its chat template"
    return ""


def _effort(endpoint: ModelEndpoint) -> str:
    effort = endpoint.body.get("reasoning_effort")
    return f'as with body {{"reasoning_effort": "low"}}{f", now {effort!r}" if effort else ""}'


class Stopped(Exception):
    """An endpoint is not asked again for a Run: its last answers were of no use, for this cause."""

    def __init__(self, fault: Fault, words: str) -> None:
        super().__init__(words)
        self.fault = fault


@dataclass(slots=True)
class _Trial:
    """The faults that an endpoint has shown to one Run so far."""

    in_flight: int = 0
    useful: bool = False
    fault: Fault | None = None
    words: str = ""
    row: int = 0


class Trials:
    """The answers of one endpoint, by Run. Until one was of use, few calls are made at once; after two faults none.

    So a model that cannot answer costs few calls, however many Proposals wait for it. Thread-safe.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[str, _Trial] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, run_id: str) -> bool:
        """Begin a call, or return False while too many untried ones are in flight. Raises Stopped."""
        with self._lock:
            trial = self._of(run_id)
            if trial.row >= STOP_AFTER and trial.fault is not None:
                raise Stopped(trial.fault, trial.words)
            if not trial.useful and trial.in_flight >= PROBES:
                return False
            trial.in_flight += 1
            return True

    def end(self, run_id: str) -> None:
        """End a call."""
        with self._lock:
            self._of(run_id).in_flight -= 1

    def note(self, run_id: str, fault: Fault | None, words: str = "") -> None:
        """Count an answer of no use, or with None a useful one, which ends the row."""
        with self._lock:
            trial = self._of(run_id)
            trial.useful = trial.useful or fault is None
            if fault is None or not (fault.of_model or not trial.useful):
                trial.fault, trial.row = None, 0
                return
            trial.row = trial.row + 1 if trial.fault is fault else 1
            trial.fault, trial.words = fault, words

    def stopped(self, run_id: str) -> bool:
        """Return True if the endpoint is not asked again for a Run."""
        with self._lock:
            return self._of(run_id).row >= STOP_AFTER

    def _of(self, run_id: str) -> _Trial:
        trial = self._runs.setdefault(run_id, _Trial())
        self._runs.move_to_end(run_id)
        if len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        return trial
