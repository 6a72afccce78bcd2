"""One conversation with models: the prompt, the replies, the questions after them, and the account of it all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from db.views.work import ProposalResult
from evolution.plans import plan_of
from evolution.types import ProposalOutcome
from prompts import Prompt, follow_up
from prompts.budget import clip, estimate_tokens
from workers.models.chat import Message, Reply
from workers.models.endpoints import Bill

ECHO_CHARACTERS = 24_000


@dataclass(slots=True)
class Conversation:
    """Everything said so far and its cost. `endpoint` and `model` gave the newest reply.

    `slots` of a block were asked for.
    """

    prompt: Prompt | None = None
    tail: list[Message] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    bill: Bill = field(default_factory=Bill)
    endpoint: str = ""
    model: str = ""
    slots: bool = False

    @property
    def tail_tokens(self) -> int:
        """An estimate of what follows the prompt."""
        return sum(estimate_tokens(message["content"]) for message in self.tail)

    def open(self, prompt: Prompt) -> list[Message]:
        """Set the prompt, and return all messages for the next call."""
        self.prompt = prompt
        return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}, *self.tail]

    def answered(self, endpoint: str, reply: Reply) -> None:
        """Note a whole reply."""
        self.endpoint, self.model = endpoint, reply.model
        self.replies.append(reply.text)

    def send_back(self, reply: Reply, refusal: str) -> None:
        """Ask again after a reply that cannot be used, with the reason."""
        self.tail += [
            {"role": "assistant", "content": clip(reply.text, ECHO_CHARACTERS) or "(nothing)"},
            {"role": "user", "content": follow_up(refusal, slots=self.slots)},
        ]

    def accounted(self, result: ProposalResult) -> ProposalResult:
        """Return the result with the texts of this conversation and what it cost."""
        bill, detail = self.bill, result.detail
        if result.outcome is ProposalOutcome.CANDIDATE and bill.failures:
            detail += f"; before that: {bill.said}"
        if bill.estimated:
            detail += "; token counts estimated"
        prompt = self.prompt.text if self.prompt else ""
        said = "".join(f"\n\n[{message['role']}]\n{message['content']}" for message in self.tail if self.replies)
        return replace(
            result,
            prompt=prompt + said,
            prompt_template=self.prompt.template if self.prompt else "",
            reply=self.replies[-1] if self.replies else bill.partial,
            plan=next(filter(None, map(plan_of, self.replies)), ""),
            detail=detail,
            model=self.model or self.endpoint,
            input_tokens=bill.input_tokens,
            output_tokens=bill.output_tokens,
            usd=bill.usd,
        )
