"""The structured results of the tools. `next` says which tool to call next."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Speedup(BaseModel):
    """Times as fast as the fastest baseline, with its confidence interval. Unconfirmed ones are not proved.

    Outdated ones are estimates: they were timed against a baseline that a later one overtook.
    """

    value: float
    low: float
    high: float
    confirmed: bool
    outdated: bool = False

    @classmethod
    def read(cls, ratio: dict[str, Any] | None, *, confirmed: bool, outdated: bool = False) -> Speedup | None:
        """Convert a Ratio of the API."""
        if ratio is None:
            return None
        interval = ratio["interval"]
        return cls(
            value=ratio["value"], low=interval["low"], high=interval["high"], confirmed=confirmed, outdated=outdated
        )


class Workload(BaseModel):
    """One set of sizes that a kernel is checked and timed on."""

    name: str
    sizes: dict[str, Any]
    weight: float
    device: str | None = Field(description="The only kind of device that has it, or null.")


class ProblemLine(BaseModel):
    """A problem in a list."""

    problem_id: str
    name: str
    description: str
    public: bool


class Problems(BaseModel):
    """Stored problems, newest first."""

    problems: list[ProblemLine]
    next: str


class StoredProblem(BaseModel):
    """A problem as stored."""

    problem_id: str
    name: str
    domain: str
    workloads: list[Workload]
    next: str


class RunLine(BaseModel):
    """A run in a list."""

    run_id: str
    device: str
    status: str
    end_reason: str | None
    speedup: Speedup | None


class ChampionLine(BaseModel):
    """The best confirmed kernel of a problem on a kind of device."""

    candidate_id: str
    run_id: str
    device: str
    device_name: str
    language: str
    by: str
    fastest_baseline: str
    speedup: Speedup


class KnownProblem(BaseModel):
    """A problem with all that earlier runs found, and with the rules of the judge for it."""

    problem_id: str
    name: str
    source: str = Field(description="The reference, without its held-out workloads.")
    workloads: list[Workload]
    rules: str = Field(description="The judge's rules for kernels of this problem.")
    timing: str = Field(description="How the judge times on this kind of device.")
    guide: str = Field(description="How to write a kernel in the language.")
    runs: list[RunLine]
    champions: list[ChampionLine]
    lessons: list[str] = Field(description="Measured effects of constants in earlier runs, surest first.")
    next: str


class Judgement(BaseModel):
    """The judge's result of one kernel. `state` is settled once it is final."""

    evaluation_id: str
    candidate_id: str
    run_id: str
    state: str
    verdict: str | None
    stage: str | None
    reason: str
    speedup: Speedup | None
    champion: bool = Field(description="It was confirmed in new processes and promoted.")
    evidence: str = Field(description="What a repair or a faster version needs: times, faults, measurements.")
    next: str


class RunState(BaseModel):
    """A run's state, spend and best kernel so far."""

    run_id: str
    problem_id: str
    device: str
    status: str
    end_reason: str | None
    message: str
    budget: dict[str, float]
    spent: dict[str, float]
    best_candidate_id: str | None
    champion_id: str | None
    speedup: Speedup | None
    recent: list[str] = Field(description="The last events, newest last.")
    next: str


class Kernel(BaseModel):
    """The best kernel of a run or a problem."""

    candidate_id: str
    language: str
    speedup: Speedup | None
    text: str
    next: str
