"""One call of an OpenAI-compatible endpoint, streamed or not, within one deadline and one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx2
import openai

from runtime.errors import SettingsError
from runtime.models import ModelEndpoint
from workers.deadline import Deadline
from workers.models.network import make_client
from workers.models.usage import Usage, count

RETRIED_STATUSES = frozenset({408, 409, 425, 429})
OVERHEAD = 64
"""Bytes on the wire for a byte of reply, at most: a streamed token of a few bytes comes in an event of hundreds."""

Message = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer. `truncated`: it stopped at its token limit. `oversized`: it was cut off here."""

    text: str
    usage: Usage
    model: str
    truncated: bool = False
    oversized: bool = False


class CallFailed(Exception):
    """A call gave no whole reply.

    `retry`: the same endpoint may succeed later. `busy`: it answers, and asks for a pause. `outage`: the failure counts
    against the endpoint's health. `usage`: an upper estimate of the call's cost.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        text: str = "",
        busy: bool = False,
        outage: bool = True,
    ) -> None:
        super().__init__(message)
        self.retry, self.retry_after_s, self.usage, self.text = retry, retry_after_s, usage, text
        self.busy, self.outage = busy, outage


@dataclass(slots=True)
class _Parts:
    """The answer so far."""

    text: str = ""
    thoughts: str = ""
    size: int = 0
    finish: str | None = None
    model: str = ""
    usage: Any = None
    oversized: bool = False


def call(
    endpoint: ModelEndpoint,
    messages: list[Message],
    *,
    max_output_tokens: int,
    max_reply_bytes: int,
    deadline: Deadline,
) -> Reply:
    """Ask once. Raises CallFailed, with the text before the failure and its estimated cost."""
    parts = _Parts()
    prompt = "\n".join(message["content"] for message in messages)

    def usage() -> Usage:
        said = parts.text + parts.thoughts
        return count(parts.usage, prompt=prompt, reply=said, max_output_tokens=max_output_tokens)

    try:
        with make_client(deadline, max_bytes=OVERHEAD * max_reply_bytes + 2**16, stall_s=endpoint.stall_s) as http:
            client = openai.OpenAI(
                base_url=endpoint.base_url,
                api_key=endpoint.api_key(),
                max_retries=0,
                http_client=http,
                default_headers=dict(endpoint.headers),
            )
            for piece in _pieces(client, endpoint, messages, max_output_tokens):
                _take(parts, piece, max_reply_bytes)
                if parts.oversized:
                    break
    except SettingsError as error:
        raise CallFailed(str(error), retry=False, outage=False) from error
    except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, ValueError, AttributeError, TypeError) as error:
        began = bool(parts.text or parts.thoughts)
        raise _failure(error, deadline, began=began, usage=usage() if began else None, text=parts.text) from error
    if parts.finish is None and not parts.oversized:
        raise CallFailed(
            "the reply ended in its middle" if parts.text else "the endpoint sent no reply",
            retry=True,
            usage=usage() if parts.text or parts.thoughts else None,
            text=parts.text,
        )
    return Reply(
        text=parts.text,
        usage=usage(),
        model=parts.model or endpoint.model,
        truncated=parts.finish == "length",
        oversized=parts.oversized,
    )


def _pieces(
    client: openai.OpenAI, endpoint: ModelEndpoint, messages: list[Message], max_output_tokens: int
) -> Iterator[Any]:
    """Yield the parts of the answer as they come; the whole answer is one part if it is not streamed."""
    arguments: dict[str, Any] = {
        "model": endpoint.model,
        "messages": messages,
        "max_completion_tokens" if endpoint.reasoning else "max_tokens": max_output_tokens,
        "extra_body": dict(endpoint.body),
    }
    if endpoint.temperature is not None:
        arguments["temperature"] = endpoint.temperature
    if not endpoint.stream:
        yield client.chat.completions.create(**arguments)
        return
    stream = client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True})
    with closing(stream):
        yield from stream


def _take(parts: _Parts, piece: Any, max_reply_bytes: int) -> None:
    """Add one part. Check every type in it: endpoints do not keep to the protocol."""
    if getattr(piece, "usage", None) is not None:
        parts.usage = piece.usage
    if isinstance(getattr(piece, "model", None), str) and piece.model:
        parts.model = piece.model[:200]
    for choice in (piece.choices or [])[:1]:
        body = getattr(choice, "delta", None) or getattr(choice, "message", None)
        content = getattr(body, "content", None)
        if isinstance(content, str):
            parts.size += len(content.encode(errors="replace"))
            parts.oversized = parts.size > max_reply_bytes
            parts.text += content if not parts.oversized else content[: max(0, max_reply_bytes - len(parts.text))]
        for name in ("reasoning_content", "reasoning"):
            thought = getattr(body, name, None)
            if isinstance(thought, str) and len(parts.thoughts) < max_reply_bytes:
                parts.thoughts += thought
        if isinstance(choice.finish_reason, str):
            parts.finish = choice.finish_reason


def _failure(error: Exception, deadline: Deadline, *, began: bool, usage: Usage | None, text: str) -> CallFailed:
    if deadline.passed:
        return CallFailed("no whole reply within the time limit", retry=False, usage=usage, text=text)
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        retry = status in RETRIED_STATUSES or status >= 500
        return CallFailed(
            f"HTTP {status}: {error.message[:300]}",
            retry=retry,
            retry_after_s=_retry_after(error.response.headers),
            busy=status == 429,
            outage=status >= 500 or status in (401, 403, 404),
        )
    if isinstance(error, openai.APIConnectionError) and not began:
        if isinstance(error, openai.APITimeoutError):
            return CallFailed("nothing came for too long", retry=True)
        cause = error.__cause__ or error
        return CallFailed(f"no connection: {cause}"[:300] or "no connection", retry=True)
    words = "the reply broke off" if began else "the answer is not what the protocol says"
    return CallFailed(f"{words}: {type(error).__name__}: {error}"[:300], retry=True, usage=usage, text=text)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds of a Retry-After header if it is a number; dates are rare here and not read."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None
