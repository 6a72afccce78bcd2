"""Exchange messages with a child within a deadline, and notice its end."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from evaluator.child.protocol import framing

_CHUNK_BYTES = 32 * 1024  # the allocator would map and unmap larger chunks at every reply
_PATIENCE = 3.0  # time without a core extends a request's limit by up to this multiple
_WORTH_S = 0.05


class DeadlinePassed(Exception):
    """The deadline has passed."""


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """The judge's ends of a child's two sockets: `channel` carries messages, `status` the report of the child's end.

    `queue_ns` returns the child's run-queue time so far.
    """

    def __init__(self, channel: socket.socket, status: socket.socket, queue_ns: Callable[[], int]) -> None:
        self._channel, self._status, self._queue_ns = channel, status, queue_ns
        self._allowed_s = 0.0  # run-queue time by which limits were extended so far
        channel.setblocking(False)
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(status, select.POLLIN)

    @property
    def fds(self) -> tuple[int, int]:
        """Return the descriptors that become readable when the child replies or ends."""
        return self._channel.fileno(), self._status.fileno()

    @property
    def status_fd(self) -> int:
        return self._status.fileno()

    def is_readable(self) -> bool:
        """Return true if the child has begun to reply, or has ended."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        self._channel.close()
        self._status.close()

    def send(self, data: bytes, fds: Sequence[int], deadline: float) -> None:
        """Send a request. Raise DeadlinePassed, ChannelClosed, or WireError if the child sent bytes before it."""
        self._refuse_unasked_bytes()
        view = memoryview(data)
        try:
            view = view[socket.send_fds(self._channel, [view], list(fds)) if fds else self._channel.send(view) :]
            while view:
                self._wait_writable(deadline)
                with contextlib.suppress(BlockingIOError):
                    view = view[self._channel.send(view) :]
        except BlockingIOError:
            raise DeadlinePassed from None
        except (BrokenPipeError, ConnectionResetError):
            raise ChannelClosed from None

    def receive(self, deadline: float, timeout_s: float) -> dict[str, Any]:
        """Return the next message. Raise DeadlinePassed, ChannelClosed or WireError.

        Time in the run queue extends the deadline, by up to three times `timeout_s`.
        """
        patience_s = _PATIENCE * timeout_s
        data = bytearray()
        channel = self._channel.fileno()
        while True:
            events = dict(self._poll.poll(milliseconds_until(deadline)))
            if not events:
                more_s = min(self._owed_s(), patience_s)
                if more_s < _WORTH_S:
                    raise DeadlinePassed
                patience_s -= more_s
                deadline = time.monotonic() + more_s
                continue
            if channel in events:
                ended = self._read_available(data)
                if _is_complete(data):
                    return framing.decode(bytes(data[framing.HEADER.size :]))
                if ended:
                    raise ChannelClosed
            elif self._status.fileno() in events:
                raise ChannelClosed

    def end_report(self) -> dict[str, int]:
        """Return the supervisor's report of the child's end, {} if there is none."""
        try:
            data = self._status.recv(4096, socket.MSG_DONTWAIT)
            value = json.loads(data) if data else {}
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def _refuse_unasked_bytes(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            if self._channel.recv(1, socket.MSG_PEEK):
                raise framing.WireError("the child sent bytes without a request")

    def _wait_writable(self, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._channel, select.POLLOUT)
        poll.register(self._status, select.POLLIN)
        events = dict(poll.poll(milliseconds_until(deadline)))
        if self._status.fileno() in events:
            raise ChannelClosed
        if not events:
            raise DeadlinePassed

    def _owed_s(self) -> float:
        """Return the child's run-queue time by which no limit was extended yet.

        It is called only after a limit has passed, so it costs nothing otherwise.
        """
        waited_s = self._queue_ns() / 1e9
        owed_s, self._allowed_s = waited_s - self._allowed_s, max(waited_s, self._allowed_s)
        return owed_s

    def _read_available(self, data: bytearray) -> bool:
        """Append the available bytes; return true if the channel has ended."""
        try:
            chunk = self._channel.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True
        data += chunk
        return not chunk


def milliseconds_until(deadline: float) -> int:
    """Return the longest time to poll. `deadline` is a `time.monotonic`."""
    # Round up: a poll that returned just before the deadline would spin.
    return max(0, int((deadline - time.monotonic()) * 1000) + 1)


def _is_complete(data: bytearray) -> bool:
    if len(data) < framing.HEADER.size:
        return False
    length = int(framing.HEADER.unpack_from(data)[0])
    if length > framing.MAX_REPLY_BYTES:
        raise framing.WireError(f"a reply of {length} bytes; the limit is {framing.MAX_REPLY_BYTES}")
    if len(data) > framing.HEADER.size + length:
        raise framing.WireError("more bytes than one reply")
    return len(data) == framing.HEADER.size + length
