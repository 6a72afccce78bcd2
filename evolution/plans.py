"""The plan in a model's reply: what it says it will do, before its code."""

from __future__ import annotations

import re
import textwrap

MAX_PLAN_CHARACTERS = 700
_HEADING = re.compile(r"^[#*\s]*plan\b[*:\s]*", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"^(?:[^\n#'\"]*)</think(?:ing)?>", re.MULTILINE)
_THOUGHT_BEGINS = re.compile(r"^[ \t]*<think(?:ing)?>", re.MULTILINE)


def plan_of(reply: str) -> str:
    """Return the words before the code of a reply, without thoughts, cut between two words."""
    text = without_thoughts(reply.replace("\r\n", "\n"))
    words = text.partition("```")[0].partition("<<<<<<<")[0]
    return textwrap.shorten(_HEADING.sub("", words), MAX_PLAN_CHARACTERS, placeholder=" ...")


def without_thoughts(text: str) -> str:
    """Drop everything up to the last closing tag, opened or not, and everything from an opening one that is not closed.

    Tags inside comments and strings of code are no tags.
    """
    ends = [found.end() for found in _THOUGHT_ENDS.finditer(text)]
    text = text[ends[-1] :] if ends else text
    begins = _THOUGHT_BEGINS.search(text)
    return text[: begins.start()] if begins else text
