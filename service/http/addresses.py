"""The client's address, past trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "via")


def address_of(scope: Scope, trusted: Sequence[Network]) -> str:
    """Return the client's address. X-Forwarded-For counts only from trusted proxies, and is read from its end."""
    peer = scope["client"][0] if scope.get("client") else ""
    hops = [hop.strip() for line in Headers(scope=scope).getlist("x-forwarded-for") for hop in line.split(",")]
    while hops and _is_one_of(peer, trusted):
        peer = hops.pop()
    return peer[:64]


def is_forwarded(scope: Scope) -> bool:
    """Tell whether a proxy forwarded this request."""
    headers = Headers(scope=scope)
    return any(name in headers for name in FORWARDED)


def block_of(address: str) -> str:
    """Return the unit of rate limits: an IPv4 address, or the /64 of one IPv6 subscriber."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def _is_one_of(address: str, networks: Sequence[Network]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)
