"""Fitting a prompt into a token budget: the least useful part goes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.errors import PromptTooLarge

BYTES_PER_TOKEN = 3.0


def estimate_tokens(text: str) -> int:
    """A careful estimate for source code and English: a token for every three bytes, so rather too many."""
    return -(-len(text.encode()) // int(BYTES_PER_TOKEN)) if text else 0


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a prompt. `forms` run from whole to shortest; "" as the last one means that it may be left out.

    `worth` orders what is shortened: the lowest first.
    """

    name: str
    worth: int
    forms: tuple[str, ...]


def fit(sections: Sequence[Section], tokens: int) -> tuple[str, tuple[str, ...]]:
    """The joined text within `tokens`, and the names of the sections that were shortened, in order.

    Raises PromptTooLarge where even the shortest forms are too long.
    """
    level = {section.name: 0 for section in sections}
    shortened: list[str] = []
    while estimate_tokens(text := _join(sections, level)) > tokens:
        open_ones = [section for section in sections if level[section.name] + 1 < len(section.forms)]
        if not open_ones:
            raise PromptTooLarge(
                f"the reference and its parents need about {estimate_tokens(text)} tokens of {tokens} allowed: "
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
    """A text cut in its middle, where it is too long, with a note of how much is gone."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half} characters left out) ...\n{text[-half:]}"
