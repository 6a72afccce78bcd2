"""What the client returns: small pictures of the API's objects. `raw` is the whole object as the service sent it.

Unknown fields are ignored, so an older client reads a newer service. Times are microseconds (`_us`) and seconds (`_s`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A speedup with its interval; above 1 the kernel is faster than `against`."""

    value: float
    low: float
    high: float
    confidence: float = 0.95
    against: str = ""
    workload: str | None = None

    @classmethod
    def read(cls, data: JsonObject | None) -> Ratio | None:
        if not data:
            return None
        interval: JsonObject = data["interval"]
        return cls(
            value=float(data["value"]),
            low=float(interval["low"]),
            high=float(interval["high"]),
            confidence=float(interval.get("confidence", 0.95)),
            against=str(data.get("against", "")),
            workload=data.get("workload"),
        )

    def __str__(self) -> str:
        return f"{self.value:.2f}x ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One optimisation. `end_reason` is empty while it is under way."""

    id: str
    problem_id: str
    device: str
    status: str
    end_reason: str = ""
    message: str = ""
    champion_id: str | None = None
    best_id: str | None = None
    spend: JsonObject = field(default_factory=dict)
    budget: JsonObject = field(default_factory=dict)
    created_at: str = ""
    raw: JsonObject = field(default_factory=dict)

    @classmethod
    def read(cls, data: JsonObject) -> Run:
        return cls(
            id=str(data["id"]),
            problem_id=str(data["problem_id"]),
            device=str(data.get("device_kind") or data.get("device") or ""),
            status=str(data["status"]),
            end_reason=str(data.get("end_reason") or ""),
            message=str(data.get("message") or ""),
            champion_id=data.get("champion_id"),
            best_id=data.get("best_id"),
            spend=data.get("spend") or {},
            budget=data.get("budget") or {},
            created_at=str(data.get("created_at") or ""),
            raw=data,
        )

    @property
    def ended(self) -> bool:
        return self.status in ("finished", "cancelled", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One kernel that was proposed. `verdict` is empty until it is judged."""

    id: str
    number: int
    language: str
    proposer: str
    operator: str = ""
    verdict: str = ""
    stage: str = ""
    reason: str = ""
    speedup: Ratio | None = None
    confirmed: bool = False
    raw: JsonObject = field(default_factory=dict)

    @classmethod
    def read(cls, data: JsonObject) -> Candidate:
        return cls(
            id=str(data["id"]),
            number=int(data.get("number") or 0),
            language=str(data.get("language") or ""),
            proposer=str(data.get("proposer") or ""),
            operator=str(data.get("operator") or ""),
            verdict=str(data.get("verdict") or ""),
            stage=str(data.get("stage") or ""),
            reason=str(data.get("reason") or ""),
            speedup=Ratio.read(data.get("speedup")),
            confirmed=bool(data.get("confirmed")),
            raw=data,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a Run; `seq` is gap-free and counts from 1."""

    seq: int
    kind: str
    created_at: str
    data: JsonObject = field(default_factory=dict)
    raw: JsonObject = field(default_factory=dict)

    @classmethod
    def read(cls, data: JsonObject) -> Event:
        return cls(
            seq=int(data["seq"]),
            kind=str(data["kind"]),
            created_at=str(data.get("created_at") or ""),
            data=data.get("data") or {},
            raw=data,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Champion:
    """One row of the leaderboard."""

    problem_id: str
    problem_name: str
    device: str
    run_id: str
    candidate_id: str
    language: str
    proposer: str
    fastest_baseline: str
    against_fastest: Ratio | None
    against_eager: Ratio | None
    raw: JsonObject = field(default_factory=dict)

    @classmethod
    def read(cls, data: JsonObject) -> Champion:
        return cls(
            problem_id=str(data["problem_id"]),
            problem_name=str(data.get("problem_name") or ""),
            device=str(data.get("device_name") or data.get("device_kind") or ""),
            run_id=str(data.get("run_id") or ""),
            candidate_id=str(data.get("candidate_id") or ""),
            language=str(data.get("language") or ""),
            proposer=str(data.get("model") or data.get("proposer") or ""),
            fastest_baseline=str(data.get("fastest_baseline") or ""),
            against_fastest=Ratio.read(data.get("against_fastest")),
            against_eager=Ratio.read(data.get("against_eager")),
            raw=data,
        )
