"""How many tokens a call took: what the endpoint says where that can be, an estimate where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from prompts.budget import estimate_tokens

SLACK_TOKENS = 256
BYTES_PER_TOKEN_AT_MOST = 40
"""No tokenizer packs more bytes of code into a token on average: a smaller count is not believed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `estimated` says that the endpoint gave none, or none that can be true."""

    input_tokens: int
    output_tokens: int
    estimated: bool


def most_input(prompt: str) -> int:
    """The most tokens that a prompt can be: one for two ASCII characters or any byte beyond them, and a wrapping."""
    data = prompt.encode(errors="replace")
    plain = sum(byte < 128 for byte in data)
    return plain // 2 + len(data) - plain + SLACK_TOKENS


def count(reported: object, *, prompt: str, reply: str, max_output_tokens: int) -> Usage:
    """The endpoint's own figures if both are possible, else estimates from the texts.

    Neither ever comes to more than was held for the call: `most_input` and `max_output_tokens` (hidden reasoning
    included). An endpoint that claims more is not believed.
    """
    said_in, said_out = getattr(reported, "prompt_tokens", None), getattr(reported, "completion_tokens", None)
    if _possible(said_in, prompt, most_input(prompt)) and _possible(said_out, reply, max_output_tokens):
        return Usage(int(said_in or 0), int(said_out or 0), False)
    return Usage(min(estimate_tokens(prompt), most_input(prompt)), min(estimate_tokens(reply), max_output_tokens), True)


def _possible(said: object, text: str, most: int) -> bool:
    if not isinstance(said, int) or isinstance(said, bool):
        return False
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN_AT_MOST <= said <= most
