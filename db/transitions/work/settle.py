"""Settlements of a claimed Job. For a Job with a lost lease, or a settled one, they change nothing and return [].

Each function takes the Session of a write transaction and the Job as claimed, and returns the queues to nudge after
the commit.
"""

from __future__ import annotations

from db.transitions.admission import settle_admission, settle_baseline
from db.transitions.judging import settle_confirm, settle_judge
from db.transitions.proposing import settle_build, settle_proposal
from db.transitions.work.failures import fail_job
from db.transitions.work.webhooks import settle_webhook

__all__ = [
    "fail_job",
    "settle_admission",
    "settle_baseline",
    "settle_build",
    "settle_confirm",
    "settle_judge",
    "settle_proposal",
    "settle_webhook",
]
