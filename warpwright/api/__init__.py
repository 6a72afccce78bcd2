"""The typed client of the HTTP API. Its types and operations are written from the API's own document.

WarpwrightError             what every method raises (warpwright.errors)
├── Refused                 4xx: understood and refused; `status` and `slug` say how
├── ServiceFailed           5xx, or an answer that cannot be read
└── Unreachable             nobody answers, or a stream could not be had back
"""

from warpwright.api.async_client import AsyncClient
from warpwright.api.client import Client
from warpwright.api.decoding import Page
from warpwright.errors import Refused, ServiceFailed, Unreachable, WarpwrightError

__all__ = ["AsyncClient", "Client", "Page", "Refused", "ServiceFailed", "Unreachable", "WarpwrightError"]
