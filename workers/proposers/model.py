"""Language models as one Proposer, in four steps: material, prompt, call, parse.

A reply that cannot be parsed is sent back once with the reason; one that does not build, or repeats an earlier answer,
as often as the setting `proposal_repairs` says. Where the model or its settings are the cause (it only
thinks, refuses, calls tools), it is not asked again: that answer would be the same, and paid for.
"""

from __future__ import annotations

import random
from dataclasses import replace

from db.views.work import Call, ProposalResult
from evaluator.types import content_hash
from evolution.types import SLOTS, Fault, ProposalOutcome
from prompts import GraphNote, Material, PromptTooLarge, ReplyError, read_reply, render, slots_in
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from synthesis import TraceError
from synthesis.errors import SlotsError
from synthesis.slots import expand
from workers.errors import StepFailed
from workers.graphs import Graphs, shared
from workers.models.breaker import OPEN_S
from workers.models.chat import Message, Reply
from workers.models.checking import BuildCheck, Check
from workers.models.conversation import Conversation
from workers.models.endpoints import BACKOFF_S, AllFailed, Endpoints, ModelCall, OutOfBudget
from workers.models.faults import Stopped, explained
from workers.models.graph import graph_note
from workers.models.material import material
from workers.models.usage import most_input
from workers.proposers.base import Request, candidate, none, one_line

TRIES = 2
USUAL_TEMPERATURE, MORE_TEMPERATURE, MOST_TEMPERATURE = 1.0, 0.25, 1.5
"""A model that repeats itself is asked at a higher temperature; the usual one stands for an endpoint's default."""
LEAST_OUTPUT_TOKENS = 256
TRACE_FROM_S, MOST_TRACE_S = 120.0, 60.0


class ModelProposer:
    """All model endpoints. `arm.model`, or an arm named after an endpoint, picks one of them."""

    def __init__(
        self,
        settings: Settings,
        *,
        backoff_s: float = BACKOFF_S,
        open_s: float = OPEN_S,
        graphs: Graphs | None = None,
        check: Check | None = None,
    ) -> None:
        self._settings, self._graphs, self._check = settings, graphs or shared(), check
        self._endpoints = Endpoints(
            settings.models, max_reply_bytes=settings.max_reply_bytes, backoff_s=backoff_s, open_s=open_s
        )

    def propose(self, request: Request) -> ProposalResult:
        """Return one Candidate, or the outcome that says why there is none. Endpoints' failures raise nothing."""
        talk = Conversation(slots=request.work.arm.variant == SLOTS)
        try:
            result = self._converse(request, talk)
        except PromptTooLarge as error:
            result = none(ProposalOutcome.REFUSED, str(error))
        except OutOfBudget as error:
            result = none(ProposalOutcome.OUT_OF_BUDGET, str(error))
        except Stopped as stop:
            result = replace(none(ProposalOutcome.MALFORMED, f"not asked again: {stop}"), fault=stop.fault)
        except AllFailed:
            late = request.deadline.passed
            outcome = ProposalOutcome.DEADLINE if late else ProposalOutcome.ENDPOINT_ERROR
            result = none(outcome, talk.bill.said or "no endpoint could be asked in time")
        result = talk.accounted(result)
        return replace(result, detail=one_line(result.detail))

    def _converse(self, request: Request, talk: Conversation) -> ProposalResult:
        asked = material(request.work, request.notes, self._graph(request))
        refusal: ReplyError | None = None
        unparsed, repairs, drafted = 0, 0, ""
        while unparsed < TRIES:
            try:
                endpoint, reply = self._call(request, asked, talk)
            except (AllFailed, OutOfBudget, Stopped):
                if refusal is None and not drafted:
                    raise
                break  # what came before says more than the failure of a later call
            try:
                drafted = _parse(reply, asked)
            except ReplyError as error:
                unparsed += 1
                refusal = explained(error, reply, endpoint)
                if refusal.fault.of_model:
                    break
                talk.send_back(reply, str(refusal))
                continue
            self._endpoints.tried(endpoint.name, request.work.run_id, None)
            wrong = self._wrong(request, drafted) if repairs < self._settings.proposal_repairs else None
            if wrong is None:
                break
            repairs += 1
            talk.send_back(reply, wrong)
        if drafted:  # one that could not be repaired, too: the judge stores why
            mended = f", after {repairs} {'repair' if repairs == 1 else 'repairs'}" if repairs else ""
            return candidate(drafted, detail=f"from {talk.endpoint}{mended}")
        assert refusal is not None
        self._endpoints.tried(talk.endpoint, request.work.run_id, refusal.fault, str(refusal))
        return _unusable(refusal, talk)

    def _wrong(self, request: Request, source: str) -> str | None:
        return self._check.refusal(request.work, source, request.deadline) if self._check is not None else None

    def _graph(self, request: Request) -> GraphNote | None:
        """Return the reference's graph, if it can be traced; not where little time is left for the answer."""
        if request.deadline.remaining_s < TRACE_FROM_S:
            return None
        deadline = request.deadline.within(MOST_TRACE_S)
        try:
            return graph_note(self._graphs.of(request.work.problem, request.work.device_kind, deadline))
        except (TraceError, StepFailed):
            return None

    def _call(self, request: Request, asked: Material, talk: Conversation) -> tuple[ModelEndpoint, Reply]:
        """Return the first whole reply of any endpoint. Raises AllFailed, PromptTooLarge, OutOfBudget."""

        def prepared(endpoint: ModelEndpoint) -> ModelCall:
            most = min(endpoint.max_output_tokens, endpoint.context_tokens // 2)
            messages = self._prompt(endpoint, asked, talk, most)
            granted = _granted(endpoint, request, talk, messages, most)
            return ModelCall(messages, granted, _temperature(endpoint, request.work.repeats))

        endpoint, reply = self._endpoints.ask(
            self._order(request), prepared, request.deadline, talk.bill, request.work.run_id
        )
        talk.answered(endpoint.name, reply)
        return endpoint, reply

    def _prompt(self, endpoint: ModelEndpoint, asked: Material, talk: Conversation, most: int) -> list[Message]:
        """Return the messages, as long as the endpoint's context allows next to `most` tokens of reply."""
        room = min(self._settings.prompt_tokens, endpoint.context_tokens - most - talk.tail_tokens)
        return talk.open(render(asked, tokens=room))

    def _order(self, request: Request) -> list[ModelEndpoint]:
        """Return the endpoints to try, in an order that the Run's seed decides."""
        work = request.work
        named = work.arm.proposer if self._settings.endpoint(work.arm.proposer) else work.arm.model
        seed = int(content_hash("endpoints", str(work.run_seed), str(work.number))[:12], 16)
        names = [named] if self._settings.endpoint(named) else []
        return self._endpoints.order(names, random.Random(seed), work.run_id)


def checked_models(settings: Settings) -> ModelProposer:
    """Return the Proposer of all model endpoints, which builds answers before it hands them on."""
    return ModelProposer(settings, check=BuildCheck(settings))


def _granted(endpoint: ModelEndpoint, request: Request, talk: Conversation, messages: list[Message], most: int) -> int:
    """Reserve a reply of at most `most` tokens in the Run's budget, and return its length. Raises OutOfBudget."""
    granted = request.granted(
        Call(
            input_tokens=most_input("\n".join(message["content"] for message in messages)),
            output_tokens=most,
            least_output_tokens=LEAST_OUTPUT_TOKENS,
            usd_per_input=(endpoint.usd_per_million_input or 0.0) / 1e6,
            usd_per_output=(endpoint.usd_per_million_output or 0.0) / 1e6,
            spent_tokens=talk.bill.input_tokens + talk.bill.output_tokens,
            spent_usd=talk.bill.usd,
        )
    )
    if not granted:
        raise OutOfBudget("what is left of the run's budget does not pay for another reply")
    return granted


def _temperature(endpoint: ModelEndpoint, repeats: int) -> float | None:
    """Return the temperature of a call: higher after answers that repeated earlier ones.

    Reasoning models take none but their own.
    """
    if not repeats or endpoint.reasoning:
        return endpoint.temperature
    usual = USUAL_TEMPERATURE if endpoint.temperature is None else endpoint.temperature
    return max(usual, min(MOST_TEMPERATURE, usual + MORE_TEMPERATURE * repeats))


def _unusable(refusal: ReplyError, talk: Conversation) -> ProposalResult:
    refused = refusal.fault in (Fault.REFUSED, Fault.FILTERED)
    outcome = ProposalOutcome.REFUSED if refused else ProposalOutcome.MALFORMED
    return replace(none(outcome, f"{talk.endpoint}: {refusal}"), fault=refusal.fault)


def _parse(reply: Reply, asked: Material) -> str:
    """Return the source in a reply. Raises ReplyError."""
    if reply.oversized:
        raise ReplyError(
            f"the reply is longer than {len(reply.text)} characters: send the file alone, and a shorter one",
            Fault.TOO_LONG,
        )
    if asked.variant == SLOTS:
        code = slots_in(reply.text, truncated=reply.truncated)
        if code is not None:
            return _expanded(code)
    parent = asked.parents[0].source if asked.parents else None
    return read_reply(reply.text, parent=parent, truncated=reply.truncated)


def _expanded(code: str) -> str:
    """Return the file that a block and its slots make. Raises ReplyError."""
    try:
        return expand(code)
    except SlotsError as error:
        raise ReplyError(str(error), Fault.BAD_SLOTS) from error
