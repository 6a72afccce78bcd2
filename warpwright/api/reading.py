"""All read operations, blocking.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from warpwright.api.boards import (
    ApiKey,
    Audit,
    Champion,
    Health,
    LeaderboardEntry,
    Model,
    Project,
    Queue,
    RegisteredDevice,
    SpendRow,
    Summary,
    WhoAmI,
    Worker,
)
from warpwright.api.calling import Caller, quoted
from warpwright.api.decoding import Page
from warpwright.api.judging import Candidate, EvaluationRecord, Lineage, Problem, Samples
from warpwright.api.searching import (
    ArmStatistics,
    Event,
    Job,
    Milestone,
    Proposal,
    ProposalSummary,
    Run,
    RunSummary,
    Tally,
    Webhook,
)
from warpwright.api.words import DeviceKind, Family, Language, RunKind, RunStatus, Verdict


class Reading(Caller):
    """All read operations, by their names in the document."""

    def download_leaderboard(
        self,
        *,
        problem_id: str | None = None,
        sort: Literal["speedup", "roofline", "newest", "problem"] | None = None,
        q: str | None = None,
        device: DeviceKind | None = None,
        device_name: str | None = None,
        language: Language | None = None,
        proposer: str | None = None,
        family: Family | None = None,
    ) -> str:
        """Download the leaderboard."""
        return self.text(
            str,
            "GET",
            "/api/v1/leaderboard.csv",
            query={
                "problem_id": problem_id,
                "sort": sort,
                "q": q,
                "device": device,
                "device_name": device_name,
                "language": language,
                "proposer": proposer,
                "family": family,
            },
        )

    def download_problem(
        self,
        id: str,
        *,
        device: DeviceKind,
        format: Literal["py", "package", "hf-kernel", "kernelbench", "gpumode", "flashinfer", "sol"] | None = None,
        held_out: bool | None = None,
    ) -> bytes:
        """Download the Champion of a Problem."""
        return self.data(
            bytes,
            "GET",
            f"/api/v1/problems/{quoted(id)}/download",
            query={"device": device, "format": format, "held_out": held_out},
        )

    def download_recording(self, id: str) -> bytes:
        """Download a whole Run."""
        return self.data(bytes, "GET", f"/api/v1/runs/{quoted(id)}/recording")

    def download_run(
        self,
        id: str,
        *,
        format: Literal["py", "package", "hf-kernel", "kernelbench", "gpumode", "flashinfer", "sol"] | None = None,
        held_out: bool | None = None,
    ) -> bytes:
        """Download the best kernel of a Run."""
        return self.data(
            bytes, "GET", f"/api/v1/runs/{quoted(id)}/download", query={"format": format, "held_out": held_out}
        )

    def get_archive(self, id: str) -> Page[Candidate]:
        """Read the Archive."""
        return self.call(Page[Candidate], "GET", f"/api/v1/runs/{quoted(id)}/archive")

    def get_candidate(self, id: str) -> Candidate:
        """Read a Candidate."""
        return self.call(Candidate, "GET", f"/api/v1/candidates/{quoted(id)}")

    def get_candidate_source(self, id: str) -> str:
        """Read the source of a Candidate."""
        return self.text(str, "GET", f"/api/v1/candidates/{quoted(id)}/source")

    def get_evaluation(self, id: str) -> EvaluationRecord:
        """Read an Evaluation."""
        return self.call(EvaluationRecord, "GET", f"/api/v1/evaluations/{quoted(id)}")

    def get_health(self) -> Health:
        """Check that the process is alive."""
        return self.call(Health, "GET", "/healthz")

    def get_key(self, id: str) -> ApiKey:
        """Read an API key."""
        return self.call(ApiKey, "GET", f"/api/v1/keys/{quoted(id)}")

    def get_lineage(self, id: str, *, most: int | None = None) -> Lineage:
        """Read the lineage of a Candidate."""
        return self.call(Lineage, "GET", f"/api/v1/candidates/{quoted(id)}/lineage", query={"most": most})

    def get_me(self) -> WhoAmI:
        """Read my own identity."""
        return self.call(WhoAmI, "GET", "/api/v1/me")

    def get_metrics(self) -> str:
        """Metrics for Prometheus."""
        return self.text(str, "GET", "/metrics")

    def get_problem(self, id: str) -> Problem:
        """Read a Problem."""
        return self.call(Problem, "GET", f"/api/v1/problems/{quoted(id)}")

    def get_project(self, id: str) -> Project:
        """Read a project."""
        return self.call(Project, "GET", f"/api/v1/projects/{quoted(id)}")

    def get_proposal(self, id: str) -> Proposal:
        """Read a Proposal."""
        return self.call(Proposal, "GET", f"/api/v1/proposals/{quoted(id)}")

    def get_readiness(self) -> Health:
        """Check that it is ready."""
        return self.call(Health, "GET", "/readyz")

    def get_run(self, id: str) -> Run:
        """Read a Run."""
        return self.call(Run, "GET", f"/api/v1/runs/{quoted(id)}")

    def get_webhook(self, id: str) -> Webhook:
        """Read the webhook of a Run."""
        return self.call(Webhook, "GET", f"/api/v1/runs/{quoted(id)}/webhook")

    def list_arms(self, id: str) -> Page[ArmStatistics]:
        """List the arms of a Run."""
        return self.call(Page[ArmStatistics], "GET", f"/api/v1/runs/{quoted(id)}/arms")

    def list_audit(
        self, *, limit: int | None = None, cursor: str | None = None, project_id: str | None = None
    ) -> Page[Audit]:
        """Read the audit log."""
        return self.call(
            Page[Audit], "GET", "/api/v1/audit", query={"limit": limit, "cursor": cursor, "project_id": project_id}
        )

    def list_candidates(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["newest", "fastest"] | None = None,
        verdict: Verdict | None = None,
        language: Language | None = None,
        proposer: str | None = None,
        confirmed: bool | None = None,
        island: int | None = None,
    ) -> Page[Candidate]:
        """List the Candidates of a Run."""
        return self.call(
            Page[Candidate],
            "GET",
            f"/api/v1/runs/{quoted(id)}/candidates",
            query={
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "verdict": verdict,
                "language": language,
                "proposer": proposer,
                "confirmed": confirmed,
                "island": island,
            },
        )

    def list_champions(self, id: str, *, limit: int | None = None) -> Page[Champion]:
        """List the Champions of a Problem."""
        return self.call(Page[Champion], "GET", f"/api/v1/problems/{quoted(id)}/champions", query={"limit": limit})

    def list_devices(self) -> Page[RegisteredDevice]:
        """List devices."""
        return self.call(Page[RegisteredDevice], "GET", "/api/v1/devices")

    def list_evaluations(self, id: str) -> Page[EvaluationRecord]:
        """List the Evaluations of a Candidate."""
        return self.call(Page[EvaluationRecord], "GET", f"/api/v1/candidates/{quoted(id)}/evaluations")

    def list_events(self, id: str, *, after: int | None = None, limit: int | None = None) -> Page[Event]:
        """Read or follow the events of a Run."""
        return self.call(
            Page[Event], "GET", f"/api/v1/runs/{quoted(id)}/events", query={"after": after, "limit": limit}
        )

    def list_jobs(self, id: str) -> Page[Job]:
        """List the work of a Run."""
        return self.call(Page[Job], "GET", f"/api/v1/runs/{quoted(id)}/jobs")

    def list_keys(
        self, *, limit: int | None = None, cursor: str | None = None, project_id: str | None = None
    ) -> Page[ApiKey]:
        """List API keys."""
        return self.call(
            Page[ApiKey], "GET", "/api/v1/keys", query={"limit": limit, "cursor": cursor, "project_id": project_id}
        )

    def list_leaderboard(
        self,
        *,
        problem_id: str | None = None,
        sort: Literal["speedup", "roofline", "newest", "problem"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        q: str | None = None,
        device: DeviceKind | None = None,
        device_name: str | None = None,
        language: Language | None = None,
        proposer: str | None = None,
        family: Family | None = None,
    ) -> Page[LeaderboardEntry]:
        """Read the leaderboard."""
        return self.call(
            Page[LeaderboardEntry],
            "GET",
            "/api/v1/leaderboard",
            query={
                "problem_id": problem_id,
                "sort": sort,
                "limit": limit,
                "cursor": cursor,
                "q": q,
                "device": device,
                "device_name": device_name,
                "language": language,
                "proposer": proposer,
                "family": family,
            },
        )

    def list_milestones(self, id: str) -> Page[Milestone]:
        """List the milestones of a Run."""
        return self.call(Page[Milestone], "GET", f"/api/v1/runs/{quoted(id)}/milestones")

    def list_models(self) -> Page[Model]:
        """List models."""
        return self.call(Page[Model], "GET", "/api/v1/models")

    def list_problems(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        q: str | None = None,
        hash: str | None = None,
        family: Family | None = None,
        public: bool | None = None,
    ) -> Page[Problem]:
        """List Problems."""
        return self.call(
            Page[Problem],
            "GET",
            "/api/v1/problems",
            query={"limit": limit, "cursor": cursor, "q": q, "hash": hash, "family": family, "public": public},
        )

    def list_projects(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Project]:
        """List projects."""
        return self.call(Page[Project], "GET", "/api/v1/projects", query={"limit": limit, "cursor": cursor})

    def list_proposals(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> Page[ProposalSummary]:
        """List the Proposals of a Run."""
        return self.call(
            Page[ProposalSummary],
            "GET",
            f"/api/v1/runs/{quoted(id)}/proposals",
            query={"limit": limit, "cursor": cursor},
        )

    def list_queues(self) -> Page[Queue]:
        """List queues."""
        return self.call(Page[Queue], "GET", "/api/v1/queues")

    def list_run_evaluations(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: Literal["building", "judging", "settled", "duplicate", "cancelled"] | None = None,
        verdict: Verdict | None = None,
    ) -> Page[EvaluationRecord]:
        """List the Evaluations of a Run."""
        return self.call(
            Page[EvaluationRecord],
            "GET",
            f"/api/v1/runs/{quoted(id)}/evaluations",
            query={"limit": limit, "cursor": cursor, "state": state, "verdict": verdict},
        )

    def list_runs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: Sequence[RunStatus] | None = None,
        problem_id: str | None = None,
        device: DeviceKind | None = None,
        kind: RunKind | None = None,
        q: str | None = None,
    ) -> Page[RunSummary]:
        """List Runs."""
        return self.call(
            Page[RunSummary],
            "GET",
            "/api/v1/runs",
            query={
                "limit": limit,
                "cursor": cursor,
                "status": status,
                "problem_id": problem_id,
                "device": device,
                "kind": kind,
                "q": q,
            },
        )

    def list_samples(self, id: str) -> Page[Samples]:
        """Read the samples of an Evaluation."""
        return self.call(Page[Samples], "GET", f"/api/v1/evaluations/{quoted(id)}/samples")

    def list_spend(self, *, by: Literal["model", "project"] | None = None) -> Page[SpendRow]:
        """Read the spend."""
        return self.call(Page[SpendRow], "GET", "/api/v1/spend", query={"by": by})

    def list_tallies(self, id: str) -> Page[Tally]:
        """Count the verdicts of a Run."""
        return self.call(Page[Tally], "GET", f"/api/v1/runs/{quoted(id)}/tallies")

    def list_workers(self) -> Page[Worker]:
        """List workers."""
        return self.call(Page[Worker], "GET", "/api/v1/workers")

    def summarise_leaderboard(
        self,
        *,
        by: Literal["everything", "device", "device_name", "language", "proposer", "model", "family", "problem"]
        | None = None,
        q: str | None = None,
        device: DeviceKind | None = None,
        device_name: str | None = None,
        language: Language | None = None,
        proposer: str | None = None,
        family: Family | None = None,
    ) -> Page[Summary]:
        """Summarise the leaderboard."""
        return self.call(
            Page[Summary],
            "GET",
            "/api/v1/leaderboard/summary",
            query={
                "by": by,
                "q": q,
                "device": device,
                "device_name": device_name,
                "language": language,
                "proposer": proposer,
                "family": family,
            },
        )
