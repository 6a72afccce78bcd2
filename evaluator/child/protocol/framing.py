"""Frame messages between the judge and a caged child, and serve requests in the child.

A message is a 4-byte big-endian length and that many bytes of UTF-8 JSON (an object). Descriptors travel with its first
byte (SCM_RIGHTS). The loop reads `{"id": ..., "op": name, ...fields}`, calls `operations[name](request, fds)` and
replies `{"id": ..., "ok": result}` or `{"id": ..., "error": {kind, message, trace}}`.

An operation is a function `(request: dict, fds: list[int]) -> dict`. It runs in the child's main thread. Descriptors
that it leaves in `fds` are closed after it returns; to keep one open it takes it out of the list. Any exception,
SystemExit and KeyboardInterrupt included, becomes an error reply, and the loop goes on.

Both sides use the framing; the judge never runs the loop.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

HEADER = struct.Struct(">I")
MAX_REQUEST_BYTES = 64 << 20
MAX_REPLY_BYTES = 4 << 20
MAX_FDS = 200
MAX_DEPTH = 64
_TEXT_LIMIT = 4000
_FRAMES = 12

Operation = Callable[[dict[str, Any], list[int]], dict[str, Any]]


class WireError(Exception):
    """A message is malformed, too large or too deep."""


def encode(message: Mapping[str, Any], limit: int) -> bytes:
    """Return the framed bytes of a message. Raise WireError if it is no JSON or longer than `limit`."""
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error
    if len(body) > limit:
        raise WireError(f"{len(body)} bytes are more than the limit of {limit}")
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """Return the object in a message's body. Raise WireError for anything but a JSON object of moderate depth."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise WireError("not a JSON object")
    _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise WireError(f"nested deeper than {MAX_DEPTH}")


def send_all(channel: socket.socket, data: bytes, fds: Sequence[int] = ()) -> None:
    """Send every byte on a blocking socket, the descriptors with the first one."""
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sent = channel.sendmsg([data], ancillary)
    if sent < len(data):
        channel.sendall(memoryview(data)[sent:])


def receive(channel: socket.socket, limit: int) -> tuple[dict[str, Any], list[int]]:
    """Return one message with its descriptors from a blocking socket. Raise EOFError when the other side is gone."""
    head, fds = _receive_start(channel)
    try:
        while len(head) < HEADER.size:
            head += _receive_some(channel, 65536)
        (length,) = HEADER.unpack_from(head)
        if length > limit:
            raise WireError(f"{length} bytes are more than the limit of {limit}")
        body = bytearray(head[HEADER.size :])
        while len(body) < length:
            body += _receive_some(channel, min(length - len(body), 1 << 20))
        return decode(bytes(body)), fds
    except (WireError, EOFError):
        close_all(fds)
        raise


def _receive_start(channel: socket.socket) -> tuple[bytes, list[int]]:
    fds = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(16384, socket.CMSG_SPACE(MAX_FDS * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    if not data:
        close_all(fds)
        raise EOFError
    return data, fds.tolist()


def _receive_some(channel: socket.socket, count: int) -> bytes:
    data = channel.recv(count)
    if not data:
        raise EOFError
    return data


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors. Ignore those that are already closed."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def serve(channel: socket.socket, operations: Mapping[str, Operation]) -> None:
    """Reply to requests until the judge is gone."""
    while True:
        try:
            request, fds = receive(channel, MAX_REQUEST_BYTES)
        except EOFError:
            return
        send_all(channel, _answer(request, fds, operations))


def _answer(request: dict[str, Any], fds: list[int], operations: Mapping[str, Operation]) -> bytes:
    ident = request.get("id")
    try:
        return encode({"id": ident, "ok": operations[request["op"]](request, fds)}, MAX_REPLY_BYTES)
    except BaseException as error:  # noqa: BLE001  a Candidate may raise anything, and the judge gets it all
        return encode({"id": ident, "error": describe(error)}, MAX_REPLY_BYTES)
    finally:
        close_all(fds)
        flush_output()


def flush_output() -> None:
    """Flush standard output and error. A Candidate may replace these streams, so anything may be raised here."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()


def describe(error: BaseException) -> dict[str, str]:
    """Describe an exception as text, safe against anything its own methods do except hanging."""
    return {
        "kind": _text(lambda: type(error).__name__),
        "message": _text(lambda: str(error)),
        "trace": _text(lambda: "\n".join(_frames(error.__traceback__))),
    }


def _text(make: Callable[[], str]) -> str:
    try:
        text = make()
        if type(text) is not str:
            return "<unprintable>"
        if len(text) > _TEXT_LIMIT:
            text = text[: _TEXT_LIMIT // 2] + " ... " + text[-_TEXT_LIMIT // 2 :]
        return text.encode("utf-8", "backslashreplace").decode()
    except BaseException:  # noqa: BLE001  str() and class names run the Candidate's code
        return "<unprintable>"


def _frames(trace: TracebackType | None) -> Iterator[str]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, trace.tb_lineno, code.co_name))
        frames = frames[-200:]
        trace = trace.tb_next
    for filename, line, function in frames[-_FRAMES:]:
        yield f"{filename}:{line} in {function}: {_source_line(filename, line)}"


def _source_line(filename: str, number: int) -> str:
    try:
        with open(filename, encoding="utf-8", errors="replace") as file:
            for index, line in enumerate(file, start=1):
                if index == number:
                    return line.strip()[:200]
    except (OSError, ValueError):
        pass
    return ""
