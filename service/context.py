"""The resources of every route: the engine, the settings, the event hub, and a function that sends nudges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import Engine

from runtime.settings import Settings
from service.http.limits import Limits
from service.identity.authentication import Authenticator
from service.metrics import Metrics
from service.streams.hub import EventHub


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One application's resources. `nudge` is called with queue names after a commit and never raises."""

    settings: Settings
    engine: Engine
    hub: EventHub
    metrics: Metrics
    authenticator: Authenticator
    limits: Limits
    nudge: Callable[[Iterable[str]], Any]
    keep_alive_s: float = 15.0
    stream_lifetime_s: float = 3600.0


def get_context(request: Request) -> Context:
    """Return the context of the application that serves this request."""
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(get_context)]
