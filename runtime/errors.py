"""The errors of runtime.

RuntimeRoomError
└── SettingsError      a setting cannot be used; the message names it and says what to write instead
"""

from __future__ import annotations


class RuntimeRoomError(Exception):
    """The base of every error that this room raises."""


class SettingsError(RuntimeRoomError):
    """A setting cannot be used; the message names it and says what to write instead."""
