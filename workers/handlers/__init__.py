"""One module per kind of Job. Each does its step outside any transaction and returns the function that settles it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from db.queues import JobKind
from db.views.rows import Job
from workers.context import Context
from workers.handlers import admit, advance, baseline, build, confirm, judge, propose, webhook
from workers.handlers.base import Settle

Handler = Callable[[Context, Job, Any], Settle]

HANDLERS: Mapping[JobKind, Handler] = {
    JobKind.ADMIT: admit.handle,
    JobKind.BASELINE: baseline.handle,
    JobKind.BUILD: build.handle,
    JobKind.JUDGE: judge.handle,
    JobKind.CONFIRM: confirm.handle,
    JobKind.PROPOSE: propose.handle,
    JobKind.ADVANCE: advance.handle,
    JobKind.WEBHOOK: webhook.handle,
}

__all__ = ["HANDLERS", "Handler", "Settle"]
