"""Request bodies of the API.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from warpwright.api.words import DeviceKind, Domain, Heritage, Language, Scope


class AnswerRequest(TypedDict):
    """One line of a file of answers."""

    line: str


class ApiKeyRequest(TypedDict):
    """A key to make."""

    expires_in_days: NotRequired[int | None]
    name: str
    project_id: NotRequired[str | None]
    scope: NotRequired[Scope]


class BudgetRequest(TypedDict):
    """Hard limits; at least one. Checked before spending; work in flight at the limit is finished and charged."""

    candidates: NotRequired[int | None]
    device_s: NotRequired[float | None]
    tokens: NotRequired[int | None]
    usd: NotRequired[float | None]
    wall_s: NotRequired[float | None]


class BundleRequest(TypedDict):
    """Work to give away in a file."""

    device: DeviceKind
    hours: NotRequired[float]
    limit: NotRequired[int]


class ConfigRequest(TypedDict):
    """The settings of the search; each has a default."""

    in_flight: NotRequired[int]
    islands: NotRequired[int]
    proposers: NotRequired[Sequence[str] | None]
    roofline_share: NotRequired[float | None]
    seed: NotRequired[int]
    seed_candidates: NotRequired[Sequence[str]]
    seed_sources: NotRequired[Sequence[str]]
    stagnation_candidates: NotRequired[int]
    target_speedup: NotRequired[float | None]


class ProblemRequest(TypedDict):
    """A Problem to store: the text of a problem file. It is read here and executed only in the judge's cage."""

    description: NotRequired[str | None]
    domain: NotRequired[Domain | None]
    name: str
    sizes: NotRequired[Sequence[Mapping[str, Any]]]
    source: str


class EvaluationRequest(TypedDict):
    """A Candidate to be judged on its own: for a stored Problem (`problem_id`) or one given here (`problem`)."""

    by: NotRequired[str]
    device: NotRequired[DeviceKind]
    language: NotRequired[Language | None]
    problem: NotRequired[ProblemRequest | None]
    problem_id: NotRequired[str | None]
    source: str


class ExtendRequest(TypedDict):
    """More budget for a Run: each limit is added to its present one. A Run that ended by its budget continues."""

    budget: BudgetRequest
    target_speedup: NotRequired[float | None]


class ForkRequest(TypedDict):
    """A new Run of the same Problem and device, seeded from another Run."""

    budget: BudgetRequest
    config: NotRequired[ConfigRequest | None]
    heritage: NotRequired[Heritage]


class InjectRequest(TypedDict):
    """A Candidate to be judged within a live Run; it uses one of the Run's candidates."""

    by: NotRequired[str]
    language: NotRequired[Language | None]
    parents: NotRequired[Sequence[str]]
    source: str


class QuotaRequest(TypedDict):
    """The limits of a project; null or left out: no limit. Days and months are in UTC."""

    device_s_per_month: NotRequired[float | None]
    live_runs: NotRequired[int | None]
    runs_per_day: NotRequired[int | None]
    usd_per_month: NotRequired[float | None]


class ProjectChangeRequest(TypedDict):
    """Changes of a project; omitted fields stay. A `quota` replaces the whole quota."""

    archived: NotRequired[bool | None]
    name: NotRequired[str | None]
    quota: NotRequired[QuotaRequest | None]
    weight: NotRequired[float | None]


class ProjectRequest(TypedDict):
    """A project to make."""

    name: str
    quota: NotRequired[QuotaRequest]
    weight: NotRequired[float]


class WebhookRequest(TypedDict):
    """A POST of JSON when the Run has ended, signed in `Warpwright-Signature: t=SECONDS,v1=HEX`.

    HEX is HMAC-SHA256 of "SECONDS.BODY" under the secret. It is tried for a minute; redirects are not followed, and
    internal addresses are refused.
    """

    secret: str
    url: str


class RunRequest(TypedDict):
    """A Run to start: of a stored Problem (`problem_id`) or of one given here (`problem`)."""

    budget: BudgetRequest
    config: NotRequired[ConfigRequest]
    device: NotRequired[DeviceKind]
    problem: NotRequired[ProblemRequest | None]
    problem_id: NotRequired[str | None]
    webhook: NotRequired[WebhookRequest | None]


class VisibilityRequest(TypedDict):
    """The visibility of a Problem."""

    public: bool
