"""Fit a prompt into a token budget by shortening the least useful section first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.errors import PromptTooLarge

BYTES_PER_TOKEN = 3.0


def estimate_tokens(text: str) -> int:
    """Return an upper estimate for source code and English: one token for every three bytes."""
    return -(-len(text.encode()) // int(BYTES_PER_TOKEN)) if text else 0


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a prompt. `forms` run from full to shortest; a last "" means that it may be left out.

    The section with the lowest `worth` is shortened first.
    """

    name: str
    worth: int
    forms: tuple[str, ...]


def fit(sections: Sequence[Section], tokens: int) -> tuple[str, tuple[str, ...]]:
    """Return the joined text within `tokens`, and the names of the shortened sections, in order.

    Raises PromptTooLarge if even the shortest forms are too long.
    """
    level = {section.name: 0 for section in sections}
    shortened: list[str] = []
    while estimate_tokens(text := _join(sections, level)) > tokens:
        open_ones = [section for section in sections if level[section.name] + 1 < len(section.forms)]
        if not open_ones:
            raise PromptTooLarge(
                f"the reference and the parents need about {estimate_tokens(text)} tokens, and {tokens} are allowed: "
                "shorten the reference, or raise WARPWRIGHT_PROMPT_TOKENS and the endpoint's context_tokens"
            )
        least = min(open_ones, key=lambda section: section.worth)
        level[least.name] += 1
        if least.name not in shortened:
            shortened.append(least.name)
    return text, tuple(shortened)


def _join(sections: Sequence[Section], level: dict[str, int]) -> str:
    parts = (section.forms[level[section.name]].strip() for section in sections)
    return "\n\n".join(part for part in parts if part) + "\n"


def clip(text: str, characters: int) -> str:
    """Return a text, shortened in its middle if it is too long, with a note of the omitted length."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half} characters left out) ...\n{text[-half:]}"
