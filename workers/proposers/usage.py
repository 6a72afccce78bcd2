"""How many tokens a call took: what the endpoint says where that can be, an estimate where it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from prompts.budget import estimate_tokens

SLACK_TOKENS = 1000
BYTES_PER_TOKEN_AT_MOST = 40
"""No tokenizer packs more bytes of code into a token on average: a smaller count is not believed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `estimated` says that the endpoint gave none, or none that can be true."""

    input_tokens: int
    output_tokens: int
    estimated: bool


def count(reported: object, *, prompt: str, reply: str, max_output_tokens: int) -> Usage:
    """The endpoint's own figures if both are possible, else estimates from the texts.

    A prompt has at most a token a byte; a reply (hidden reasoning included) at most what was asked for.
    """
    said_in, said_out = getattr(reported, "prompt_tokens", None), getattr(reported, "completion_tokens", None)
    if _possible(said_in, prompt, len(prompt.encode(errors="replace")) + SLACK_TOKENS) and _possible(
        said_out, reply, max(max_output_tokens, len(reply.encode(errors="replace"))) + SLACK_TOKENS
    ):
        return Usage(int(said_in or 0), int(said_out or 0), False)
    return Usage(estimate_tokens(prompt), estimate_tokens(reply), True)


def _possible(said: object, text: str, most: int) -> bool:
    if not isinstance(said, int) or isinstance(said, bool):
        return False
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN_AT_MOST <= said <= most
