"""The exposure of the service: loopback only, or open to others, which requires keys."""

from __future__ import annotations

import ipaddress

from runtime.settings import Settings
from service.errors import StartupError
from service.middleware.access import LOOPBACK_HOSTS, host_name

LEAST_CHARACTERS = 16


def is_loopback(host: str) -> bool:
    """Tell whether a service bound to `host` is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_keyless(settings: Settings) -> bool:
    """Tell whether every caller counts as the operator: bound to loopback, under no other name, with no key set.

    A foreign name in WARPWRIGHT_ALLOWED_HOSTS means a proxy that lets others in.
    """
    names = {host_name(host) for host in settings.allowed_hosts}
    return settings.api_key is None and is_loopback(settings.host) and names <= LOOPBACK_HOSTS


def _database(settings: Settings) -> str:
    """Return the variable that names this service's database to another command, without a password; "" for none."""
    url = settings.database_url
    return f"WARPWRIGHT_DATABASE_URL={url} " if url.startswith("sqlite:") else ""


def check_exposure(settings: Settings, *, operator_key: bool = False) -> None:
    """Raise StartupError where others could reach the service without a key.

    `operator_key`: the database holds one.
    """
    if not is_keyless(settings) and settings.api_key is None and not operator_key:
        where = settings.host if not is_loopback(settings.host) else ", ".join(settings.allowed_hosts)
        raise StartupError(
            f"refusing to serve {where} without a key: anyone who reaches it could run code here. "
            f"Set WARPWRIGHT_API_KEY ({LEAST_CHARACTERS} characters or more, for example openssl rand -hex 24), create "
            f"one ({_database(settings)}python -m service keys create --scope operator), or listen on 127.0.0.1."
        )
    if settings.api_key is not None and len(settings.api_key) < LEAST_CHARACTERS:
        raise StartupError(
            f"WARPWRIGHT_API_KEY is too short: use {LEAST_CHARACTERS} characters or more, "
            "for example openssl rand -hex 24"
        )
