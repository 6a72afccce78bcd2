"""All operations that change something, awaited.

Written by scripts/generate_client.py from service/openapi.json: change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpwright.api.boards import ApiKey, Bundle, Collected, NewApiKey, Project, Released
from warpwright.api.calling import AsyncCaller, quoted
from warpwright.api.judging import EvaluationRecord, Problem
from warpwright.api.requests import BudgetRequest, ConfigRequest, ProblemRequest, QuotaRequest, WebhookRequest
from warpwright.api.searching import Proposal, Run
from warpwright.api.words import DeviceKind, Domain, Heritage, Language, Scope


class AsyncChanging(AsyncCaller):
    """All operations that change something, by their names in the document."""

    async def cancel_run(self, id: str, *, key: str | None = None) -> Run:
        """Cancel a Run."""
        return await self.call(Run, "POST", f"/api/v1/runs/{quoted(id)}/cancel", key=key)

    async def change_project(
        self,
        id: str,
        *,
        archived: bool | None = None,
        name: str | None = None,
        quota: QuotaRequest | None = None,
        weight: float | None = None,
    ) -> Project:
        """Change a project."""
        return await self.call(
            Project,
            "PATCH",
            f"/api/v1/projects/{quoted(id)}",
            body={"archived": archived, "name": name, "quota": quota, "weight": weight},
        )

    async def collect_answer(self, id: str, *, line: str, key: str | None = None) -> Collected:
        """Settle one answer of a bundle."""
        return await self.call(Collected, "POST", f"/api/v1/bundles/{quoted(id)}/answers", body={"line": line}, key=key)

    async def create_bundle(
        self, *, device: DeviceKind, hours: float | None = None, limit: int | None = None, key: str | None = None
    ) -> Bundle:
        """Make a bundle of waiting work."""
        return await self.call(
            Bundle, "POST", "/api/v1/bundles", body={"device": device, "hours": hours, "limit": limit}, key=key
        )

    async def create_evaluation(
        self,
        *,
        source: str,
        by: str | None = None,
        device: DeviceKind | None = None,
        language: Language | None = None,
        problem: ProblemRequest | None = None,
        problem_id: str | None = None,
        key: str | None = None,
    ) -> EvaluationRecord:
        """Have a Candidate judged."""
        return await self.call(
            EvaluationRecord,
            "POST",
            "/api/v1/evaluations",
            body={
                "by": by,
                "device": device,
                "language": language,
                "problem": problem,
                "problem_id": problem_id,
                "source": source,
            },
            key=key,
        )

    async def create_key(
        self,
        *,
        name: str,
        expires_in_days: int | None = None,
        project_id: str | None = None,
        scope: Scope | None = None,
        key: str | None = None,
    ) -> NewApiKey:
        """Make an API key."""
        return await self.call(
            NewApiKey,
            "POST",
            "/api/v1/keys",
            body={"expires_in_days": expires_in_days, "name": name, "project_id": project_id, "scope": scope},
            key=key,
        )

    async def create_problem(
        self,
        *,
        name: str,
        source: str,
        description: str | None = None,
        domain: Domain | None = None,
        sizes: Sequence[Mapping[str, Any]] | None = None,
        key: str | None = None,
    ) -> Problem:
        """Store a Problem."""
        return await self.call(
            Problem,
            "POST",
            "/api/v1/problems",
            body={"description": description, "domain": domain, "name": name, "sizes": sizes, "source": source},
            key=key,
        )

    async def create_project(
        self, *, name: str, quota: QuotaRequest | None = None, weight: float | None = None, key: str | None = None
    ) -> Project:
        """Make a project."""
        return await self.call(
            Project, "POST", "/api/v1/projects", body={"name": name, "quota": quota, "weight": weight}, key=key
        )

    async def create_run(
        self,
        *,
        budget: BudgetRequest,
        config: ConfigRequest | None = None,
        device: DeviceKind | None = None,
        problem: ProblemRequest | None = None,
        problem_id: str | None = None,
        webhook: WebhookRequest | None = None,
        key: str | None = None,
    ) -> Run:
        """Start a Run."""
        return await self.call(
            Run,
            "POST",
            "/api/v1/runs",
            body={
                "budget": budget,
                "config": config,
                "device": device,
                "problem": problem,
                "problem_id": problem_id,
                "webhook": webhook,
            },
            key=key,
        )

    async def extend_run(
        self, id: str, *, budget: BudgetRequest, target_speedup: float | None = None, key: str | None = None
    ) -> Run:
        """Give a Run more budget."""
        return await self.call(
            Run,
            "POST",
            f"/api/v1/runs/{quoted(id)}/extend",
            body={"budget": budget, "target_speedup": target_speedup},
            key=key,
        )

    async def fork_run(
        self,
        id: str,
        *,
        budget: BudgetRequest,
        config: ConfigRequest | None = None,
        heritage: Heritage | None = None,
        key: str | None = None,
    ) -> Run:
        """Fork a Run."""
        return await self.call(
            Run,
            "POST",
            f"/api/v1/runs/{quoted(id)}/fork",
            body={"budget": budget, "config": config, "heritage": heritage},
            key=key,
        )

    async def inject_candidate(
        self,
        id: str,
        *,
        source: str,
        by: str | None = None,
        language: Language | None = None,
        parents: Sequence[str] | None = None,
        key: str | None = None,
    ) -> Proposal:
        """Inject a Candidate into a Run."""
        return await self.call(
            Proposal,
            "POST",
            f"/api/v1/runs/{quoted(id)}/candidates",
            body={"by": by, "language": language, "parents": parents, "source": source},
            key=key,
        )

    async def pause_run(self, id: str, *, key: str | None = None) -> Run:
        """Pause a Run."""
        return await self.call(Run, "POST", f"/api/v1/runs/{quoted(id)}/pause", key=key)

    async def release_bundle(self, id: str, *, key: str | None = None) -> Released:
        """Return a bundle's work to its queue."""
        return await self.call(Released, "POST", f"/api/v1/bundles/{quoted(id)}/release", key=key)

    async def resume_run(self, id: str, *, key: str | None = None) -> Run:
        """Resume a Run."""
        return await self.call(Run, "POST", f"/api/v1/runs/{quoted(id)}/resume", key=key)

    async def revoke_key(self, id: str) -> ApiKey:
        """Revoke an API key."""
        return await self.call(ApiKey, "DELETE", f"/api/v1/keys/{quoted(id)}")

    async def set_visibility(self, id: str, *, public: bool) -> Problem:
        """Publish a Problem."""
        return await self.call(Problem, "PUT", f"/api/v1/problems/{quoted(id)}/visibility", body={"public": public})
