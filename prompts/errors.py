"""The errors of prompts.

PromptError
├── PromptTooLarge     what must be said does not fit the token budget
└── ReplyError         a reply holds no usable Candidate; the message can be sent back to who wrote it
"""

from __future__ import annotations


class PromptError(Exception):
    """Base of what this room raises."""


class PromptTooLarge(PromptError):
    """What must be said does not fit the token budget."""


class ReplyError(PromptError):
    """A reply holds no usable Candidate; the message says what to do instead, to who wrote it."""
