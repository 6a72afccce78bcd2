"""The parts of an answer, read as they come: endpoints do not keep to the protocol, so every type is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evolution.types import Fault

MOST_WORDS = 300
_THOUGHTS = ("thinking", "reasoning", "reasoning_content")


class ErrorBody(Exception):
    """An answer whose body is an error, although its status is 200."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status = status


@dataclass(slots=True)
class Parts:
    """The answer so far. `refusal` are the model's own words, `tools` the names of tools that it wants to call."""

    text: str = ""
    thoughts: str = ""
    refusal: str = ""
    tools: tuple[str, ...] = ()
    size: int = 0
    finish: str | None = None
    model: str = ""
    usage: Any = None
    oversized: bool = False

    @property
    def began(self) -> bool:
        """True if anything came that is paid for."""
        return bool(self.text or self.thoughts or self.refusal or self.tools or self.told_output)

    @property
    def told_output(self) -> int:
        """The tokens of reply that the endpoint claims, 0 if it claims none."""
        said = getattr(self.usage, "completion_tokens", None)
        return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else 0

    @property
    def fault(self) -> Fault | None:
        """The cause, if no usable file is in the text: known from the answer's form."""
        if self.refusal or self.finish == "refusal":
            return Fault.REFUSED
        if self.finish in ("content_filter", "safety"):
            return Fault.FILTERED
        if self.tools or self.finish in ("tool_calls", "function_call"):
            return Fault.TOOL_CALL
        if self.text.strip():
            return None
        if self.thoughts or self.finish == "length" or self.told_output:
            return Fault.THOUGHTS_ONLY
        return Fault.EMPTY


def take(parts: Parts, piece: Any, max_reply_bytes: int) -> None:
    """Add one part. Raises ErrorBody if it is an error."""
    if not (choices := getattr(piece, "choices", None)):
        _refuse_error(piece)
    if getattr(piece, "usage", None) is not None:
        parts.usage = piece.usage
    if isinstance(getattr(piece, "model", None), str) and piece.model:
        parts.model = piece.model[:200]
    for choice in (choices or [])[:1]:
        body = getattr(choice, "delta", None) or getattr(choice, "message", None)
        _take_body(parts, body, max_reply_bytes)
        if isinstance(choice.finish_reason, str):
            parts.finish = choice.finish_reason


def _take_body(parts: Parts, body: Any, max_reply_bytes: int) -> None:
    text, thoughts = _content(getattr(body, "content", None))
    if text:
        parts.size += len(text.encode(errors="replace"))
        parts.oversized = parts.size > max_reply_bytes
        parts.text += text if not parts.oversized else text[: max(0, max_reply_bytes - len(parts.text))]
    said = next((one for name in _THOUGHTS[1:] if isinstance(one := getattr(body, name, None), str)), "")
    if len(parts.thoughts) < max_reply_bytes:
        parts.thoughts += thoughts + said
    refusal = getattr(body, "refusal", None)
    if isinstance(refusal, str) and len(parts.refusal) < MOST_WORDS:
        parts.refusal += refusal
    calls = getattr(body, "tool_calls", None)
    if (isinstance(calls, list) and calls) or getattr(body, "function_call", None):
        names = [_named(getattr(call, "function", None)) for call in calls or ()]
        parts.tools = (*parts.tools, *(name for name in names if name)) or ("a tool",)


def _named(function: Any) -> str:
    name = getattr(function, "name", None)
    return name[:80] if isinstance(name, str) else ""


def _content(content: Any) -> tuple[str, str]:
    """Return text and thoughts of a content that is a text, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text = thoughts = ""
    for part in content if isinstance(content, list) else ():
        fields = part if isinstance(part, Mapping) else getattr(part, "__dict__", {})
        kind = fields.get("type")
        said = next((one for key in ("text", "thinking", "reasoning") if isinstance(one := fields.get(key), str)), "")
        if kind in _THOUGHTS:
            thoughts += said
        elif kind in (None, "text", "output_text"):
            text += said
    return text, thoughts


def _refuse_error(piece: Any) -> None:
    """Raise ErrorBody for {"error": ...}, {"detail": ...} or {"message": ...}; a list of details is FastAPI's 422."""
    for name in ("error", "detail", "message"):
        found = getattr(piece, name, None)
        if found:
            code = getattr(piece, "code", 422 if isinstance(found, list) else None)
            raise ErrorBody(words_of({name: found}), status_of(found if isinstance(found, Mapping) else {"code": code}))


def status_of(body: object) -> int | None:
    """Return the status that an error body has as its code, a number or a text."""
    code = body.get("code") if isinstance(body, Mapping) else None
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        return int(code)
    return code if isinstance(code, int) else None


def words_of(body: object) -> str:
    """Return an error body's reason in words: of `error`, `detail` or `message`, nested or not; "" if it has none."""
    if isinstance(body, str):
        return body.strip()[:MOST_WORDS]
    if isinstance(body, list):
        return "; ".join(filter(None, map(words_of, body[:3])))[:MOST_WORDS]
    if isinstance(body, Mapping):
        for name in ("error", "errors", "detail", "message", "msg", "title"):
            words = words_of(body.get(name))
            if words:
                return words
    return ""
