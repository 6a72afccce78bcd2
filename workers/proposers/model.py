"""Language models as one Proposer, in four steps: material, prompt, call, parse.

A reply that cannot be parsed is sent back once with the reason.
"""

from __future__ import annotations

import random
from dataclasses import replace

from db.views.work import Call, ProposalResult
from evaluator.types import content_hash
from evolution.types import ProposalOutcome
from prompts import Material, PromptTooLarge, ReplyError, read_reply, render
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from workers.models.breaker import OPEN_S
from workers.models.chat import Message, Reply
from workers.models.conversation import Conversation
from workers.models.endpoints import BACKOFF_S, AllFailed, Endpoints, ModelCall
from workers.models.material import material
from workers.models.usage import most_input
from workers.proposers.base import Request, candidate, none, one_line

TRIES = 2
LEAST_OUTPUT_TOKENS = 256


class OutOfBudget(Exception):
    """The rest of the Run's budget does not pay for another reply."""


class ModelProposer:
    """All model endpoints. `arm.model`, or an arm named after an endpoint, picks one of them."""

    def __init__(self, settings: Settings, *, backoff_s: float = BACKOFF_S, open_s: float = OPEN_S) -> None:
        self._settings = settings
        self._endpoints = Endpoints(
            settings.models, max_reply_bytes=settings.max_reply_bytes, backoff_s=backoff_s, open_s=open_s
        )

    def propose(self, request: Request) -> ProposalResult:
        """Return one Candidate, or the outcome that says why there is none. Endpoints' failures raise nothing."""
        talk = Conversation()
        try:
            result = self._converse(request, talk)
        except PromptTooLarge as error:
            result = none(ProposalOutcome.REFUSED, str(error))
        except OutOfBudget as error:
            result = none(ProposalOutcome.OUT_OF_BUDGET, str(error))
        except AllFailed:
            late = request.deadline.passed
            outcome = ProposalOutcome.DEADLINE if late else ProposalOutcome.ENDPOINT_ERROR
            result = none(outcome, "; ".join(talk.bill.failures) or "no endpoint could be asked in time")
        result = talk.accounted(result)
        return replace(result, detail=one_line(result.detail))

    def _converse(self, request: Request, talk: Conversation) -> ProposalResult:
        asked, refusal = material(request.work, request.notes), ""
        for _ in range(TRIES):
            try:
                reply = self._call(request, asked, talk)
            except (AllFailed, OutOfBudget):
                if refusal:  # the first reply's fault says more than the failure of the second call
                    return none(ProposalOutcome.MALFORMED, refusal)
                raise
            try:
                return candidate(_parse(reply, asked), detail=f"from {talk.endpoint}")
            except ReplyError as error:
                refusal = str(error)
            talk.send_back(reply, refusal)
        return none(ProposalOutcome.MALFORMED, refusal)

    def _call(self, request: Request, asked: Material, talk: Conversation) -> Reply:
        """Return the first whole reply of any endpoint. Raises AllFailed, PromptTooLarge, OutOfBudget."""

        def prepared(endpoint: ModelEndpoint) -> ModelCall:
            most = min(endpoint.max_output_tokens, endpoint.context_tokens // 2)
            messages = self._prompt(endpoint, asked, talk, most)
            return ModelCall(messages, _granted(endpoint, request, talk, messages, most))

        endpoint, reply = self._endpoints.ask(self._order(request), prepared, request.deadline, talk.bill)
        talk.answered(endpoint.name, reply)
        return reply

    def _prompt(self, endpoint: ModelEndpoint, asked: Material, talk: Conversation, most: int) -> list[Message]:
        """Return the messages, as long as the endpoint's context allows next to `most` tokens of reply."""
        room = min(self._settings.prompt_tokens, endpoint.context_tokens - most - talk.tail_tokens)
        return talk.open(render(asked, tokens=room))

    def _order(self, request: Request) -> list[ModelEndpoint]:
        """Return the endpoints to try, in an order that the Run's seed decides."""
        work = request.work
        named = work.arm.proposer if self._settings.endpoint(work.arm.proposer) else work.arm.model
        seed = int(content_hash("endpoints", str(work.run_seed), str(work.number))[:12], 16)
        return self._endpoints.order([named] if self._settings.endpoint(named) else [], random.Random(seed))


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


def _parse(reply: Reply, asked: Material) -> str:
    """Return the source in a reply. Raises ReplyError."""
    if reply.oversized:
        raise ReplyError(
            f"the reply is longer than {len(reply.text)} characters: send the file alone, and a shorter one"
        )
    parent = asked.parents[0].source if asked.parents else None
    return read_reply(reply.text, parent=parent, truncated=reply.truncated)
