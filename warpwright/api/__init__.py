"""The typed client of the HTTP API. Its types and operations are generated from the API's document.

WarpwrightError             the base of all errors of the client (warpwright.errors)
├── Refused                 4xx: the request was refused; `status` and `slug` give the reason
├── ServiceFailed           5xx, or an answer that cannot be read
└── Unreachable             no service answers, or a broken stream could not be resumed
"""

from warpwright.api.async_client import AsyncClient
from warpwright.api.client import Client
from warpwright.api.decoding import Page
from warpwright.errors import Refused, ServiceFailed, Unreachable, WarpwrightError

__all__ = ["AsyncClient", "Client", "Page", "Refused", "ServiceFailed", "Unreachable", "WarpwrightError"]
