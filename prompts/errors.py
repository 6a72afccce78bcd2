"""The errors of prompts.

PromptError
├── PromptTooLarge     the required sections exceed the token budget
└── ReplyError         a reply holds no usable Candidate; the message can be sent back to the model
"""

from __future__ import annotations

from evolution.types import Fault


class PromptError(Exception):
    """Base of this room's errors."""


class PromptTooLarge(PromptError):
    """The required sections exceed the token budget."""


class ReplyError(PromptError):
    """A reply holds no usable Candidate. The message tells the model what to do instead."""

    def __init__(self, message: str, fault: Fault = Fault.NO_CODE) -> None:
        super().__init__(message)
        self.fault = fault
