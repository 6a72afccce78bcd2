"""Prompts to language models and the parsing of replies: `render(material)` and `read_reply(reply, ...)`."""

from __future__ import annotations

from prompts.errors import PromptError, PromptTooLarge, ReplyError
from prompts.material import (
    ApproachNote,
    GraphNote,
    LessonNote,
    Material,
    OperationNote,
    ParentNote,
    PrecedentNote,
    RememberedNote,
)
from prompts.render import Prompt, follow_up, render
from prompts.reply import read_reply, slots_in
from prompts.results import describe_results
from prompts.rules import Rules, describe_rules

__all__ = [
    "ApproachNote",
    "GraphNote",
    "LessonNote",
    "Material",
    "OperationNote",
    "ParentNote",
    "PrecedentNote",
    "Prompt",
    "PromptError",
    "PromptTooLarge",
    "RememberedNote",
    "ReplyError",
    "Rules",
    "describe_results",
    "describe_rules",
    "follow_up",
    "read_reply",
    "render",
    "slots_in",
]
