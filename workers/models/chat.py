"""One call of an OpenAI-compatible endpoint, streamed or not, within one deadline and one size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion

from evolution.types import Fault
from runtime.errors import SettingsError
from runtime.models import ModelEndpoint
from workers.deadline import Deadline
from workers.models.network import make_client
from workers.models.pieces import ErrorBody, Parts, status_of, take, words_of
from workers.models.usage import Usage, count, most

RETRIED_STATUSES = frozenset({408, 409, 425, 429})
OVERHEAD = 64
"""Bytes on the wire for a byte of reply, at most: a streamed token of a few bytes comes in an event of hundreds."""

Message = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer, of at most `limit` tokens. `truncated`: it stopped there. `oversized`: it was cut off here.

    `fault` is the cause if its text holds no usable file, as far as the answer's form tells; `said` are words on it.
    """

    text: str
    usage: Usage
    model: str
    limit: int = 0
    truncated: bool = False
    oversized: bool = False
    fault: Fault | None = None
    said: str = ""


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


def call(
    endpoint: ModelEndpoint,
    messages: list[Message],
    *,
    max_output_tokens: int,
    max_reply_bytes: int,
    deadline: Deadline,
    temperature: float | None = None,
) -> Reply:
    """Ask once. Raises CallFailed, with the text before the failure and its estimated cost."""
    parts = Parts()
    prompt = "\n".join(message["content"] for message in messages)

    def usage() -> Usage:
        said = parts.text + parts.thoughts + parts.refusal + " ".join(parts.tools)
        full = parts.finish == "length"
        return count(parts.usage, prompt=prompt, reply=said, max_output_tokens=max_output_tokens, full=full)

    stall_s = endpoint.stall_s if endpoint.stream else endpoint.timeout_s  # a whole answer comes after a long silence
    try:
        with make_client(deadline, max_bytes=OVERHEAD * max_reply_bytes + 2**16, stall_s=stall_s) as http:
            client = openai.OpenAI(
                base_url=endpoint.base_url,
                api_key=endpoint.api_key(),
                max_retries=0,
                http_client=http,
                default_headers=dict(endpoint.headers),
            )
            for piece in _pieces(client, endpoint, messages, max_output_tokens, temperature):
                take(parts, piece, max_reply_bytes)
                if parts.oversized:
                    break
    except SettingsError as error:
        raise CallFailed(str(error), retry=False, outage=False) from error
    except (
        openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, ErrorBody, ValueError, AttributeError, TypeError,
    ) as error:  # fmt: skip
        cost = usage() if parts.began else None
        if _waited_in_vain(error) and parts.usage is None:
            cost = most(prompt, max_output_tokens)
        raise _failure(error, deadline, stall_s=stall_s, began=parts.began, usage=cost, text=parts.text) from error
    if parts.finish is None and not parts.oversized and not parts.began:
        raise CallFailed("the endpoint sent no reply", retry=True)
    return Reply(
        text=parts.text,
        usage=usage(),
        model=parts.model or endpoint.model,
        limit=max_output_tokens,
        truncated=parts.finish == "length",
        oversized=parts.oversized,
        fault=parts.fault,
        said=parts.refusal or ", ".join(dict.fromkeys(parts.tools)) or parts.finish or "",
    )


def _pieces(
    client: openai.OpenAI,
    endpoint: ModelEndpoint,
    messages: list[Message],
    max_output_tokens: int,
    temperature: float | None,
) -> Iterator[Any]:
    """Yield the parts of the answer as they come; the whole answer is one part if it is not streamed."""
    arguments: dict[str, Any] = {
        "model": endpoint.model,
        "messages": messages,
        "max_completion_tokens" if endpoint.reasoning else "max_tokens": max_output_tokens,
        "extra_body": dict(endpoint.body),
    }
    if temperature is not None:
        arguments["temperature"] = temperature
    if not endpoint.stream:
        yield client.chat.completions.create(**arguments)
        return
    stream = client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True})
    with closing(stream):
        if "json" in stream.response.headers.get("content-type", ""):  # it does not stream, whatever it was asked
            body = json.loads(stream.response.read())
            yield ChatCompletion.construct(**body) if isinstance(body, dict) else body
            return
        yield from stream


def _waited_in_vain(error: BaseException | None) -> bool:
    """Tell whether the request was sent and its answer did not come in time: it goes on there, and may be charged."""
    while error is not None and not isinstance(error, httpx2.ReadTimeout):
        error = error.__cause__
    return error is not None


def _failure(
    error: Exception, deadline: Deadline, *, stall_s: float, began: bool, usage: Usage | None, text: str
) -> CallFailed:
    if deadline.passed:
        return CallFailed("no whole reply within the time limit", retry=False, usage=usage, text=text)
    if _waited_in_vain(error):
        words = f"nothing came for {stall_s:g} s: raise stall_s of this endpoint if its model thinks for longer"
        return CallFailed(words, retry=False, usage=usage, text=text)
    if isinstance(error, openai.APIStatusError):
        headers = error.response.headers
        return _refused(error.status_code, words_of(error.body) or error.message, _retry_after(headers), usage, text)
    if isinstance(error, ErrorBody) or (isinstance(error, openai.APIError) and error.body is not None):
        body = getattr(error, "body", None)
        status = error.status if isinstance(error, ErrorBody) else status_of(body)
        words = str(error) if isinstance(error, ErrorBody) else words_of(body) or str(error)
        return _refused(status, words, None, usage, text)
    if isinstance(error, openai.APIConnectionError) and not began:
        cause = error.__cause__ or error
        return CallFailed(f"no connection: {cause}"[:300] or "no connection", retry=True)
    words = "the reply broke off" if began else "the answer is not what the protocol says"
    if isinstance(error, json.JSONDecodeError):
        words += f" ({error.doc[:100]!r})"
    return CallFailed(f"{words}: {type(error).__name__}: {error}"[:300], retry=True, usage=usage, text=text)


def _refused(status: int | None, words: str, retry_after_s: float | None, usage: Usage | None, text: str) -> CallFailed:
    """Return the failure of a call that the endpoint answered with an error: by its status, or inside a 200.

    One without a status is tried again, but is no outage: the endpoint answers, so it needs no long pause.
    """
    told = f"HTTP {status}" if status is not None else "the endpoint answers with an error"
    return CallFailed(
        f"{told}: {words}"[:400],
        retry=status is None or status in RETRIED_STATUSES or status >= 500,
        retry_after_s=retry_after_s,
        usage=usage,
        text=text,
        busy=status == 429,
        outage=status is not None and (status >= 500 or status in (401, 402, 403, 404)),
    )


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds of a Retry-After header if it is a number; dates are rare here and not read."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None
