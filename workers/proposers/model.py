"""Asking a language model: render, ask, read; a reply that cannot be used is sent back once with the reason."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from db.views.work import Approach, Call, ParentView, ProposalResult, ProposeWork
from evaluator.types import content_hash
from evolution.lessons import describe
from evolution.types import ProposalOutcome
from prompts import (
    ApproachNote,
    LessonNote,
    Material,
    ParentNote,
    PrecedentNote,
    Prompt,
    PromptTooLarge,
    RememberedNote,
    ReplyError,
    follow_up,
    read_reply,
    render,
)
from prompts.budget import clip, estimate_tokens
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from workers.proposers.base import Request, candidate, none, one_line
from workers.proposers.breaker import OPEN_S
from workers.proposers.chat import Message, Reply
from workers.proposers.endpoints import BACKOFF_S, AllFailed, Asking, Bill, Endpoints
from workers.proposers.usage import most_input

TRIES = 2
LEAST_OUTPUT_TOKENS = 256
ECHO_CHARACTERS = 24_000


class OutOfBudget(Exception):
    """What is left of the Run's budget does not pay for another reply."""


@dataclass(slots=True)
class _Talk:
    """One conversation: what was said, what came back, what it cost."""

    prompt: Prompt | None = None
    tail: list[Message] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    bill: Bill = field(default_factory=Bill)
    endpoint: str = ""
    model: str = ""


class ModelProposer:
    """Every model endpoint as one Proposer; `arm.model`, or an arm named after an endpoint, picks one."""

    def __init__(self, settings: Settings, *, backoff_s: float = BACKOFF_S, open_s: float = OPEN_S) -> None:
        self._settings = settings
        self._endpoints = Endpoints(
            settings.models, max_reply_bytes=settings.max_reply_bytes, backoff_s=backoff_s, open_s=open_s
        )

    def propose(self, request: Request) -> ProposalResult:
        """One Candidate, or the outcome that says why not; never an exception for what an endpoint does."""
        talk = _Talk()
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
        return _with_account(result, talk)

    def _converse(self, request: Request, talk: _Talk) -> ProposalResult:
        refusal = ""
        for _ in range(TRIES):
            try:
                reply = self._ask(request, talk)
            except (AllFailed, OutOfBudget):
                if refusal:  # the first reply's fault is the better answer than what befell the second question
                    return none(ProposalOutcome.MALFORMED, refusal)
                raise
            try:
                return candidate(_source(reply, request.work), detail=f"from {talk.endpoint}")
            except ReplyError as error:
                refusal = str(error)
            talk.tail += [
                {"role": "assistant", "content": clip(reply.text, ECHO_CHARACTERS) or "(nothing)"},
                {"role": "user", "content": follow_up(refusal)},
            ]
        return none(ProposalOutcome.MALFORMED, refusal)

    def _ask(self, request: Request, talk: _Talk) -> Reply:
        work = request.work
        named = work.arm.proposer if self._settings.endpoint(work.arm.proposer) else work.arm.model
        seed = int(content_hash("endpoints", str(work.run_seed), str(work.number))[:12], 16)
        order = self._endpoints.order([named] if self._settings.endpoint(named) else [], random.Random(seed))
        endpoint, reply = self._endpoints.ask(
            order, lambda chosen: self._asking(chosen, request, talk), request.deadline, talk.bill
        )
        talk.endpoint, talk.model = endpoint.name, reply.model
        talk.replies.append(reply.text)
        return reply

    def _asking(self, endpoint: ModelEndpoint, request: Request, talk: _Talk) -> Asking:
        """What this endpoint is sent. Raises PromptTooLarge, OutOfBudget."""
        most = min(endpoint.max_output_tokens, endpoint.context_tokens // 2)
        tail = sum(estimate_tokens(message["content"]) for message in talk.tail)
        room = min(self._settings.prompt_tokens, endpoint.context_tokens - most - tail)
        prompt = render(_material(request), tokens=room)
        talk.prompt = prompt
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}, *talk.tail]
        return Asking(messages, _granted(endpoint, request, talk.bill, messages, most))


def _granted(endpoint: ModelEndpoint, request: Request, bill: Bill, messages: list[Message], most: int) -> int:
    """How many tokens of reply the Run's budget still pays for, at most `most`; they are held. Raises OutOfBudget."""
    granted = request.granted(
        Call(
            input_tokens=most_input("\n".join(message["content"] for message in messages)),
            output_tokens=most,
            least_output_tokens=LEAST_OUTPUT_TOKENS,
            usd_per_input=(endpoint.usd_per_million_input or 0.0) / 1e6,
            usd_per_output=(endpoint.usd_per_million_output or 0.0) / 1e6,
            spent_tokens=bill.input_tokens + bill.output_tokens,
            spent_usd=bill.usd,
        )
    )
    if not granted:
        raise OutOfBudget("what is left of the run's budget does not pay for another reply")
    return granted


def _source(reply: Reply, work: ProposeWork) -> str:
    if reply.oversized:
        raise ReplyError(
            f"the reply is longer than {len(reply.text)} characters: send the file alone, and a shorter one"
        )
    parent = work.parents[0].source if work.parents else None
    return read_reply(reply.text, parent=parent, truncated=reply.truncated)


def _with_account(result: ProposalResult, talk: _Talk) -> ProposalResult:
    bill = talk.bill
    detail = result.detail
    if result.outcome is ProposalOutcome.CANDIDATE and bill.failures:
        detail += f"; before that: {'; '.join(bill.failures)}"
    if bill.estimated:
        detail += "; token counts estimated"
    prompt = talk.prompt.text if talk.prompt else ""
    said = "".join(f"\n\n[{message['role']}]\n{message['content']}" for message in talk.tail if talk.replies)
    return replace(
        result,
        prompt=prompt + said,
        prompt_template=talk.prompt.template if talk.prompt else "",
        reply=talk.replies[-1] if talk.replies else bill.partial,
        detail=one_line(detail),
        model=talk.model or talk.endpoint,
        input_tokens=bill.input_tokens,
        output_tokens=bill.output_tokens,
        usd=bill.usd,
    )


def _material(request: Request) -> Material:
    work = request.work
    found = work.remembered
    return Material(
        problem=work.problem,
        device_kind=work.device_kind,
        operator=work.arm.operator,
        device_name=work.device_name,
        device_facts=work.device_facts,
        facts=work.facts,
        baseline=work.baseline,
        parents=tuple(_parent(parent) for parent in work.parents),
        lessons=tuple(
            LessonNote(
                verdict=lesson.verdict.value,
                stage=lesson.stage.value,
                reason=lesson.reason,
                language=lesson.language.value,
                count=lesson.count,
            )
            for lesson in work.lessons
        ),
        varied=work.varied,
        approaches=tuple(_approach(one) for one in work.approaches),
        remembered=None
        if found is None
        else RememberedNote(problem=found.problem, speedup=found.speedup, source=found.source),
        precedents=tuple(
            PrecedentNote(problem=one.problem, said=describe(one.lesson), sizes=one.sizes) for one in work.precedents
        ),
        number=work.number,
        notes=request.notes,
        variant=work.arm.variant,
    )


def _parent(parent: ParentView) -> ParentNote:
    return ParentNote(
        source=parent.source,
        language=parent.language,
        verdict=parent.verdict.value if parent.verdict else "",
        stage=parent.stage.value if parent.stage else "",
        reason=parent.reason,
        evidence=parent.evidence,
        resources=parent.resources,
        measurements=parent.measurements,
        ratios=parent.ratios,
        configuration=parent.configuration,
        relatives=tuple(_approach(one) for one in parent.relatives),
    )


def _approach(one: Approach) -> ApproachNote:
    return ApproachNote(
        number=one.number,
        language=one.language.value,
        niche=one.niche,
        verdict=one.verdict.value if one.verdict is not None else "",
        stage=one.stage.value,
        reason=one.reason,
        said=one.said,
        speedup=one.speedup,
        measurements=one.measurements,
        ratios=one.ratios,
        configuration=one.configuration,
    )
