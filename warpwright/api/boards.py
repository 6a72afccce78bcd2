"""Answers of the API: boards.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.api.judging import Device, Environment, Ratio
from warpwright.api.words import DeviceKind, Family, Language, Scope, Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key without its secret. `prefix` is how the secret begins; `last_used_at` is right to a few minutes."""

    created_at: str
    created_by: str
    expires_at: str | None
    id: str
    last_used_at: str | None
    name: str
    prefix: str
    project_id: str
    revoked_at: str | None
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One line of the audit log. `actor` is a key's id, "bootstrap" or "local"; `action` an operation's name."""

    action: str
    actor: str
    address: str
    at: str
    detail: Mapping[str, Any]
    id: str
    project_id: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Work given away in a file, whose content is `text`. At `expires_at` it goes back to its queue."""

    created_at: str
    device_kind: DeviceKind
    expires_at: str
    id: str
    tasks: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """A promotion: the confirmed speedups of a Candidate on a device. `standing`: no later one has replaced it."""

    against_eager: Ratio | None
    against_fastest: Ratio
    candidate_id: str
    device_kind: str
    device_name: str
    fastest_baseline: str
    promoted_at: str
    run_id: str
    standing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The fate of an answer: settled; returned to the queue; gone (late or repeated) or refused, with no effect."""

    detail: str
    job_id: str
    outcome: Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One wrong field: a JSON pointer into the body, or the name of a parameter; `location` says which."""

    field: str
    location: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is "ok" or "unavailable"; `checks` gives "ok" or the fault of each dependency."""

    checks: Mapping[str, Any]
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardEntry:
    """The Champion of a Problem on a Device kind, with its confirmed speedups.

    `roofline` is how near it comes to the Roofline floor, 0 to 1: the geometric mean over Workloads of floor / time.
    """

    against_eager: Ratio | None
    against_fastest: Ratio
    candidate_id: str
    confirmed_at: str
    device_kind: DeviceKind
    device_name: str
    family: Family = "other"
    fastest_baseline: str
    id: str = ""
    language: Language
    model: str
    problem_id: str
    problem_name: str
    proposer: str
    roofline: float | None = None
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An available language model. A dollar budget is refused for one that is not `priced`."""

    context_tokens: int
    max_output_tokens: int
    model: str
    name: str
    priced: bool
    usd_per_million_input: float | None
    usd_per_million_output: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key as made. `key` is the secret: it is shown here and never again."""

    created_at: str
    expires_at: str | None
    id: str
    key: str
    name: str
    project_id: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
    """An error. `type` names the kind and is stable; `detail` says what to do about this occurrence.

    `errors` lists the fields that are wrong; `line` is the line of the source that was refused; `needed` is the scope
    that a key lacks; `quota`, `used` and `allowed` are a quota that is used up;
    `error_id` finds a 500 in the service's log.
    """

    allowed: float | None = None
    detail: str
    error_id: str | None = None
    errors: tuple[FieldError, ...] | None = None
    line: int | None = None
    needed: str | None = None
    quota: str | None = None
    status: int
    title: str
    type: str
    used: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The limits of a project; None: no limit. Days and months are in UTC."""

    device_s_per_month: float | None = None
    live_runs: int | None = None
    runs_per_day: int | None = None
    usd_per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A project's live Runs, its Runs started today, and its charges of this month."""

    device_s: float
    live_runs: int
    month: str
    runs_today: int
    tokens: int
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project with its quotas and usage."""

    archived_at: str | None
    created_at: str
    id: str
    name: str
    quota: Quota
    usage: Usage
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue over all projects. `oldest_ready_s` is how long the oldest Job has been ready."""

    claimed: int
    held: int
    oldest_ready_s: float | None
    queue: str
    ready: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredDevice:
    """A registered device. `isolation` lists the protections that its machine cannot enforce.

    `observed` is a worker's last reading, at `observed_at`: `utilisation_percent`, clocks in MHz (`sm_mhz`,
    `memory_mhz`, `cpu_mhz`), `temperature_c`, `power_w`, `throttle`; unavailable readings are left out.
    """

    device: Device
    environment: Environment
    isolation: tuple[str, ...]
    observed: Mapping[str, Any] = field(default_factory=dict)
    observed_at: str | None = None
    queue: str
    seen_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The number of tasks that were returned to their queue."""

    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    """The spend under a name: a model's, a Proposer's or a project's. `runs` and `passed` where they are known."""

    candidates: int
    device_s: float
    name: str
    passed: int | None
    proposals: int
    runs: int | None
    tokens: int
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A group of Champions in numbers. Speedups are over the fastest Baseline."""

    best_candidate_id: str
    best_speedup: float
    champions: int
    geometric_mean_speedup: float
    group: str
    median_roofline: float | None
    median_speedup: float
    problems: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoAmI:
    """The caller. `actor` is its name in the audit log."""

    actor: str
    project_id: str
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker process, once for every Job that it holds; `kind` is null where it holds none.

    Its heartbeat moves `lease_until` and `seen_at`.
    """

    claimed_at: str | None
    kind: str | None
    lease_until: str | None
    queue: str
    seen_at: str | None = None
    worker: str
