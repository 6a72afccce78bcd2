"""Addresses that a tenant may have us call: public ones, and the internal hosts that the operator lists."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

_LABEL = re.compile("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parsed http(s) URL. `host` is a lower-case name or an address without brackets."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.secure else 80) else f"{name}:{self.port}"


def read_url(url: str) -> Target:
    """Parse an http(s) URL. Raise ValueError, with a readable message, for anything else."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("a URL is printable ASCII without spaces or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError("this is not a URL") from error
    if parts.scheme not in ("http", "https"):
        raise ValueError("the URL begins with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("leave user and password out of the URL: deliveries are signed instead")
    if not parts.hostname or parts.fragment:
        raise ValueError("give a URL with a host and without a #fragment")
    host = parts.hostname.removesuffix(".")
    if len(host) > 253 or (":" not in host and not all(_LABEL.fullmatch(label) for label in host.split("."))):
        raise ValueError("the host of the URL is names of 1 to 63 letters, digits, - or _, with dots between them")
    if port == 0:
        raise ValueError("the port of the URL is 1 to 65535")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    secure = parts.scheme == "https"
    return Target(secure=secure, host=host, port=port or (443 if secure else 80), path=path)


def is_public(address: IPAddress) -> bool:
    """Tell whether an address belongs to the open internet, in any wrapped form.

    Loopback, private, link-local (clouds' metadata), unique local, shared, multicast and reserved ones do not.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.sixtofour is not None:
            return is_public(address.sixtofour)
        if address.teredo is not None:
            return is_public(address.teredo[1])
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def literal(host: str) -> IPAddress | None:
    """Return the address that a host spells out, or None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_listed(target: Target, allowed: Collection[str]) -> bool:
    """Tell whether the operator allows this internal host: listed as HOST or HOST:PORT."""
    return target.host in allowed or f"{target.host}:{target.port}" in allowed
