"""Delivery of a webhook: a signed POST to a public address, retried for a minute, never redirected.

Each attempt resolves the name once, requires that every address of it is allowed, and connects to one of these. So a
name that resolves differently a moment later changes nothing. A timer ends an attempt even if the other side keeps
sending.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from db.views.work import Delivery, WebhookWork
from runtime.addresses import Target, is_listed, is_public, read_url
from workers.errors import DestinationRefused

ATTEMPT_TIMEOUT_S = 10.0
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)
_RETRYABLE_STATUSES = (408, 425, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLimits:
    """The total time of a delivery, its pauses between attempts, and the internal hosts that it may reach."""

    deadline_s: float
    allowed_hosts: Collection[str] = ()
    pauses_s: tuple[float, ...] = PAUSES_S


def signature(secret: str, timestamp: int, body: str) -> str:
    """Return the value of `Warpwright-Signature`: HMAC-SHA256 over "TIMESTAMP.BODY", which protects both."""
    digest = hmac.new(secret.encode(), f"{timestamp}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def deliver(work: WebhookWork, limits: DeliveryLimits, *, wait: Callable[[float], bool]) -> Delivery:
    """Post until success, a final refusal, or the deadline. `wait` sleeps; it returns True if this worker stops."""
    end = time.monotonic() + limits.deadline_s
    attempts, status, error = 0, None, ""
    for pause in (*limits.pauses_s, None):
        attempts += 1
        try:
            status = _post(work, limits, min(ATTEMPT_TIMEOUT_S, end - time.monotonic()))
        except DestinationRefused as refused:
            return Delivery(delivered=False, attempts=attempts, error=str(refused))
        except (OSError, http.client.HTTPException) as failure:
            status, error = None, f"{type(failure).__name__}: {failure}"[:300]
        else:
            if 200 <= status < 300:
                return Delivery(delivered=True, attempts=attempts, status=status)
            error = f"the receiver answered {status}"
            error += "; redirects are not followed" if 300 <= status < 400 else ""
            if status < 500 and status not in _RETRYABLE_STATUSES:
                break
        if pause is None or time.monotonic() + pause >= end or wait(pause):
            break
    return Delivery(delivered=False, attempts=attempts, status=status, error=error)


def addresses(target: Target, allowed: Collection[str]) -> list[str]:
    """Return the addresses of a host, if all are allowed. Raises DestinationRefused, OSError."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    known = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not is_listed(target, allowed):
        for address in known:
            if not is_public(ipaddress.ip_address(address.partition("%")[0])):
                raise DestinationRefused(f"{target.host} has an address that is not public; the operator can allow it")
    return known


def _post(work: WebhookWork, limits: DeliveryLimits, timeout_s: float) -> int:
    """Send one POST and return the answer's status. Its body is not read."""
    try:
        target = read_url(work.url)
    except ValueError as error:
        raise DestinationRefused(str(error)) from error
    address = addresses(target, limits.allowed_hosts)[0]
    connection = _PinnedConnection(target, address, timeout_s)
    timestamp = int(time.time())
    headers = {
        "Host": target.authority,
        "Content-Type": "application/json",
        "User-Agent": "warpwright",
        "Warpwright-Event": "run.ended",
        "Warpwright-Delivery": work.delivery_id,
        "Warpwright-Signature": signature(work.secret, timestamp, work.body),
    }
    watchdog = threading.Timer(timeout_s, connection.abort)
    watchdog.start()
    try:
        connection.request("POST", target.path, body=work.body.encode(), headers=headers)
        status = connection.getresponse().status
        if connection.was_aborted:
            raise TimeoutError(f"no complete answer within {timeout_s:.0f} s")
        return status
    finally:
        watchdog.cancel()
        connection.close()


class _PinnedConnection(http.client.HTTPConnection):
    """A connection to a checked address, under the name of the URL."""

    def __init__(self, target: Target, address: str, timeout_s: float) -> None:
        super().__init__(target.host, target.port, timeout=max(0.1, timeout_s))
        self._target, self._address = target, address
        self.was_aborted = False

    def connect(self) -> None:
        """Connect to the address; the certificate must be for the name."""
        self.sock = socket.create_connection((self._address, self._target.port), self.timeout)
        if self._target.secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._target.host)

    def abort(self) -> None:
        """Shut the connection down, from another thread."""
        self.was_aborted = True
        if self.sock is not None:
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended already
