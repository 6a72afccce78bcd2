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
    """Drop what stands between tags, everything up to a closing tag that was not opened, and from an open one on.

    Tags inside comments and strings of code are no tags.
    """
    kept: list[str] = []
    at = 0
    for ends in _THOUGHT_ENDS.finditer(text):
        begins = _THOUGHT_BEGINS.search(text, at, ends.end())
        if begins is None:
            kept.clear()
        else:
            kept.append(text[at : begins.start()])
        at = ends.end()
    begins = _THOUGHT_BEGINS.search(text, at)
    return "".join(kept) + text[at : begins.start() if begins else None]
