"""Framing survives any bytes from the other side, and a child's output is kept within limits."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.cage.monitor import Capture
from evaluator.child.protocol import framing

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(st.dictionaries(st.text(), VALUES))
def test_encoded_messages_are_decoded(message: dict[str, Any]) -> None:
    data = framing.encode(message, framing.MAX_REPLY_BYTES)
    assert framing.decode(data[framing.HEADER.size :]) == message


@given(st.binary())
def test_any_bytes_are_an_object_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(framing.WireError):
        assert isinstance(framing.decode(data), dict)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a":['])
def test_deep_json_is_refused(opening: bytes) -> None:
    for depth in (100, 900, 100_000):
        with pytest.raises(framing.WireError):
            framing.decode(opening * depth + b"1" + {b"[": b"]", b'{"a":': b"}", b'{"a":[': b"]}"}[opening] * depth)


def test_a_reply_over_the_limit_is_not_encoded() -> None:
    with pytest.raises(framing.WireError, match="limit"):
        framing.encode({"x": "y" * 100}, 50)


def test_messages_with_descriptors_cross_a_socket() -> None:
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with ours, theirs:
        big = {"text": "x" * 3_000_000}
        sender = threading.Thread(target=framing.send_all, args=(ours, framing.encode(big, 1 << 24), [write]))
        sender.start()
        message, fds = framing.receive(theirs, 1 << 24)
        sender.join()
        assert message == big
        os.write(fds[0], b"through")
        assert os.read(read, 100) == b"through"
        framing.close_all([*fds, read, write])
        framing.close_all(fds)  # closed already: no error
        ours.close()
        with pytest.raises(EOFError):
            framing.receive(theirs, 100)


@pytest.mark.parametrize("body", [json.dumps([1]).encode(), b"{", b"x" * 200])
def test_malformed_messages_are_wire_errors(body: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(framing.HEADER.pack(len(body)) + body)
        with pytest.raises(framing.WireError):
            framing.receive(theirs, 100)


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(2, 50))
def test_a_capture_keeps_the_head_and_the_tail_within_its_limit(chunks: list[bytes], limit: int) -> None:
    capture = Capture(limit)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    assert capture.total_bytes == len(whole)
    text = capture.text()
    half = limit // 2
    if len(whole) <= 2 * half:
        assert text == whole.decode("utf-8", "backslashreplace")
    else:
        assert f"{len(whole) - 2 * half} bytes left out" in text
