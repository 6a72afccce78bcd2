"""The tokens of a call: the endpoint's own figures if they are possible, else an estimate."""

from __future__ import annotations

from dataclasses import dataclass

from prompts.budget import estimate_tokens

SLACK_TOKENS = 256
BYTES_PER_TOKEN_AT_MOST = 40
"""No tokenizer packs more bytes of code into a token on average: a smaller count is refused."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `estimated`: the endpoint gave none, or impossible ones."""

    input_tokens: int
    output_tokens: int
    estimated: bool


def most_input(prompt: str) -> int:
    """Return an upper bound for a prompt's tokens: one for two ASCII characters or for any other byte, and a margin."""
    data = prompt.encode(errors="replace")
    plain = sum(byte < 128 for byte in data)
    return plain // 2 + len(data) - plain + SLACK_TOKENS


def most(prompt: str, max_output_tokens: int) -> Usage:
    """Return the most that a call can take, which is what was reserved for it."""
    return Usage(most_input(prompt), max_output_tokens, True)


def count(reported: object, *, prompt: str, reply: str, max_output_tokens: int, full: bool = False) -> Usage:
    """Return the endpoint's own figures if both are possible, else estimates from the texts.

    `full`: the reply ended at its limit, so that is what it took, however much of it is hidden.

    Neither exceeds the tokens that were reserved for the call: `most_input` and `max_output_tokens` (hidden reasoning
    included). An endpoint's claim of more is ignored.
    """
    said_in, said_out = getattr(reported, "prompt_tokens", None), getattr(reported, "completion_tokens", None)
    if _possible(said_in, prompt, most_input(prompt)) and _possible(said_out, reply, max_output_tokens):
        return Usage(int(said_in or 0), int(said_out or 0), False)
    said = max_output_tokens if full else min(estimate_tokens(reply), max_output_tokens)
    return Usage(min(estimate_tokens(prompt), most_input(prompt)), said, True)


def _possible(said: object, text: str, most: int) -> bool:
    if not isinstance(said, int) or isinstance(said, bool):
        return False
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN_AT_MOST <= said <= most
