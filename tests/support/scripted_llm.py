"""A scripted OpenAI-compatible server for tests: each request takes the next step of its script.

    with ScriptedLLM([Say("hello"), Fail(429, retry_after="0"), Drip("x", every_s=0.05)]) as server:
        server.base_url

The last step is repeated for ever. What was asked is in `server.requests`. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Say:
    """A whole reply. `usage` None leaves it out; "true" counts words; a dict is sent as it is, true or not."""

    text: str
    usage: dict[str, Any] | str | None = "true"
    finish: str | None = "stop"
    model: str = "scripted"
    pieces: int = 8


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "scripted failure"
    retry_after: str | None = None


@dataclass(frozen=True)
class Cut:
    """The first part of a reply, then the connection is closed."""

    text: str


@dataclass(frozen=True)
class Stall:
    """Nothing at all is answered until the server stops."""


@dataclass(frozen=True)
class Drip:
    """A stream that never ends: a byte of a comment every so often; with `headers`, a byte of the headers."""

    every_s: float = 0.05
    headers: bool = False


@dataclass(frozen=True)
class Message:
    """A reply with these fields instead of a text: reasoning_content, refusal, tool_calls, content as parts."""

    fields: dict[str, Any]
    finish: str | None = "stop"
    usage: dict[str, Any] | str | None = None
    model: str = "scripted"
    text: str = ""


@dataclass(frozen=True)
class Body:
    """200 OK with this JSON; with `event`, as the only event of a stream."""

    value: Any
    event: bool = False


@dataclass(frozen=True)
class Garbage:
    """200 OK with something that is no answer."""

    body: str = "<html>welcome</html>"
    content_type: str = "text/html"


Step = Say | Message | Body | Fail | Cut | Stall | Drip | Garbage
Script = Sequence[Step] | Callable[[int, dict[str, Any]], Step]


class ScriptedLLM:
    """The server, on a free loopback port. `script` may be a function of (request number, request body)."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self.stopping = threading.Event()
        outer = self

        class Handler(_Handler):
            server_object = outer

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)

    def next_step(self, body: dict[str, Any], headers: dict[str, str]) -> Step:
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
        if callable(self._script):
            return self._script(number, body)
        return self._script[min(number, len(self._script) - 1)]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave whenever it likes."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_object: ScriptedLLM

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        headers = {key.lower(): value for key, value in self.headers.items()}
        with contextlib.suppress(OSError):  # the client may leave whenever it likes
            self._play(self.server_object.next_step(body, headers), body)

    def _play(self, step: Step, body: dict[str, Any]) -> None:
        stream = bool(body.get("stream"))
        if isinstance(step, Fail):
            extra = {"Retry-After": step.retry_after} if step.retry_after is not None else {}
            self._json(step.status, {"error": {"message": step.message, "type": "scripted", "code": None}}, extra)
        elif isinstance(step, Garbage):
            self._send(200, step.content_type, step.body.encode())
        elif isinstance(step, Body):
            self._body(step, stream=stream)
        elif isinstance(step, Stall):
            self.server_object.stopping.wait()
            self.close_connection = True
        elif isinstance(step, Drip):
            self._drip(step)
        elif isinstance(step, Cut):
            self._cut(step, stream=stream)
        elif stream:
            self._stream(step, body)
        else:
            self._whole(step, body)

    def _body(self, step: Body, *, stream: bool) -> None:
        if not (stream and step.event):
            self._json(200, step.value)
            return
        self._start_stream()
        self._data(step.value)
        self._chunk(b"")

    def _usage(self, step: Say | Message, body: dict[str, Any]) -> dict[str, Any] | None:
        if step.usage == "true":
            prompt = sum(len(message["content"].split()) for message in body["messages"])
            said = len(step.text.split())
            return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
        return step.usage if isinstance(step.usage, dict) else None

    def _whole(self, step: Say | Message, body: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": step.text}
        if isinstance(step, Message):
            message = {"role": "assistant", "content": None, **step.fields}
        answer: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": step.model,
            "choices": [{"index": 0, "message": message, "finish_reason": step.finish}],
        }
        if (usage := self._usage(step, body)) is not None:
            answer["usage"] = usage
        self._json(200, answer)

    def _stream(self, step: Say | Message, body: dict[str, Any]) -> None:
        self._start_stream()
        if isinstance(step, Message):
            self._event(step.model, step.fields, None)
        else:
            size = max(1, -(-len(step.text) // step.pieces))
            for at in range(0, len(step.text), size):
                self._event(step.model, {"content": step.text[at : at + size]}, None)
        self._event(step.model, {}, step.finish)
        if (usage := self._usage(step, body)) is not None:
            self._data(
                {
                    "id": "c",
                    "object": "chat.completion.chunk",
                    "created": 0,
                    "model": step.model,
                    "choices": [],
                    "usage": usage,
                }
            )
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _cut(self, step: Cut, *, stream: bool) -> None:
        if stream:
            self._start_stream()
            self._event("scripted", {"content": step.text}, None)
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"id": "chatcmpl-1", "choices": [')
        self.wfile.flush()
        self.close_connection = True

    def _drip(self, step: Drip) -> None:
        if step.headers:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not self.server_object.stopping.wait(step.every_s):
                self.wfile.write(b"x")
                self.wfile.flush()
            return
        self._start_stream()
        while not self.server_object.stopping.wait(step.every_s):
            self._chunk(b":")
        self.close_connection = True

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, model: str, delta: dict[str, Any], finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._data({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]})

    def _data(self, value: dict[str, Any]) -> None:
        self._chunk(f"data: {json.dumps(value)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _json(self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(value).encode(), headers)

    def _send(self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)
