"""Two tenants, one of them with secrets, and a walk over every route of the application."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from sqlalchemy import Engine
from starlette.routing import Mount, Route

from db.engine import read_session, write_session
from db.ids import new_id
from db.repositories import candidates, evaluations, proposals
from db.tables.queue import BundleRow
from db.transitions.access.keys import create_key
from db.transitions.access.projects import create_project
from db.transitions.work.webhooks import set_webhook
from db.views.work import ProposalResult, ProposeWork
from evaluator.problem import read_problem
from evaluator.types import DeviceKind
from tests.db.world import EXHAUSTED, World, candidate_result
from tests.service.conftest import PROBLEM

SECRET = "zebra"
"""In every text of the first tenant: names, sources, prompts, replies, reasons."""
SOURCE = PROBLEM.replace("Softmax over rows", f"Softmax of the {SECRET} team")
KERNELS = [f"SPEED = 'speed={speed} '\n# {SECRET} kernel\nclass ModelNew: ...\n" for speed in ("1.6", "2.4", "2.0")]
KERNELS.append("BUILD_ERROR")


@dataclass
class Tenant:
    """A project with a key of its own, which may do all but operate."""

    id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


def make_tenant(engine: Engine, name: str, scope: str = "manage") -> Tenant:
    with write_session(engine) as s:
        project = create_project(s, name)
        key = create_key(s, project.id, name=f"{name}'s key", scope=scope, created_by="test")[1]
    return Tenant(project.id, key)


def _propose(work: ProposeWork) -> ProposalResult:
    if work.given is not None:
        return candidate_result(work.given)
    if work.arm_number >= len(KERNELS):
        return EXHAUSTED
    texts = {"prompt": f"a {SECRET} prompt", "reply": f"a {SECRET} reply", "detail": f"{SECRET} detail", "usd": 0.125}
    return candidate_result(KERNELS[work.arm_number], **texts)


@dataclass
class Estate:
    """A tenant's estate: a finished Run with a Champion, one that waits, and the ids of everything in them."""

    tenant: Tenant
    ids: dict[str, str]
    everything: set[str]
    """Every id that nobody else may ever see."""


def make_estate(engine: Engine, tenant: Tenant) -> Estate:
    world = World(engine=engine, propose=_propose, problem=read_problem(SOURCE, f"{SECRET} softmax"))
    run = world.start(project=tenant.id)
    world.drain()
    with write_session(engine) as s:
        set_webhook(s, run.id, f"https://{SECRET}.example/", f"{SECRET} secret")
    waiting = world.start(project=tenant.id)
    ended = world.run(run.id)
    assert ended.champion_id is not None
    with read_session(engine) as s:
        found = candidates.list(s, run.id)
        asked = proposals.list(s, run.id)
        judged = [view.id for candidate in found for view in evaluations.list(s, candidate.id)]
    ids = {
        "problem": run.problem_id,
        "run": run.id,
        "waiting": waiting.id,
        "champion": ended.champion_id,
        "candidate": next(c.id for c in found if c.id != ended.champion_id),
        "proposal": asked[-1].id,
        "evaluation": judged[0],
        "bundle": _bundle(engine),
    }
    everything = {*ids.values(), *(c.id for c in found), *(p.id for p in asked), *judged, tenant.id}
    return Estate(tenant, ids, everything)


def _bundle(engine: Engine) -> str:
    """A bundle, all of whose work is done."""
    moment, id = datetime.now(UTC), new_id("bndl")
    with write_session(engine) as s:
        s.add(BundleRow(id=id, device_kind=DeviceKind.CPU, leases={}, created_at=moment, expires_at=moment))
    return id


CHOICES = {"act": "cancel"}
"""Parts of a path that are not ids."""
OTHERS = frozenset({"to", "a", "b", "with", "against", "left", "right", "other"})
"""Parameters of pages that name a second Candidate."""


@dataclass(frozen=True)
class Address:
    """One method of one route, with its parts named."""

    method: str
    path: str
    operation: dict[str, Any] | None
    route: APIRoute | None = None

    @property
    def parts(self) -> list[str]:
        return re.findall(r"{([^}]+)}", self.path)

    def filled(self, ids: dict[str, str]) -> str:
        """The path with the ids of an estate in it, each by the noun before it."""
        path = self.path
        for part in self.parts:
            noun = path.split("{" + part + "}")[0].rstrip("/").rpartition("/")[2]
            named = CHOICES.get(part) or ids[_noun(noun, part)]
            path = path.replace("{" + part + "}", named, 1)
        return path

    def form(self, ids: dict[str, str]) -> dict[str, str] | None:
        """Return a page's form: a number in every field, but ids where there are ids."""
        if self.route is None or self.method == "GET":
            return None
        fields = [field.alias for field in self.route.dependant.body_params]
        return {name: ids.get(name.removesuffix("_id"), "1") if name.endswith("_id") else "1" for name in fields}

    def queries(self, ids: dict[str, str]) -> dict[str, str]:
        """Every parameter that can name something, naming something of the estate; and what is required."""
        page = get_flat_params(self.route.dependant) if self.route is not None else []
        found = {field.alias: ids["candidate"] for field in page if field.alias in OTHERS}
        for parameter in (self.operation or {}).get("parameters", []):
            name, schema = parameter["name"], parameter.get("schema", {})
            if parameter["in"] != "query":
                continue
            if any(noun in name for noun in ids) and "device" not in name:
                found[name] = ids[next(noun for noun in ids if noun in name)]
            elif parameter.get("required"):
                found[name] = "cpu" if name == "device" else ids["candidate"] if schema.get("type") == "string" else "1"
        return found


def _noun(noun: str, part: str) -> str:
    words = {"problems": "problem", "runs": "run", "candidates": "candidate", "proposals": "proposal"}
    words |= {"evaluations": "evaluation", "keys": "key", "projects": "project", "bundles": "bundle"}
    if part.endswith("_id") and part != "id":
        return part.removesuffix("_id")
    assert noun in words, f"a route has an id that this walk does not know: .../{noun}/{{{part}}}; teach it"
    return words[noun]


def addresses(app: FastAPI) -> Iterator[Address]:
    """Every method of every route: those of the API by its document, pages by the router."""
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            yield Address(method.upper(), path, operation)
    for route in _routes(app):
        if route.endpoint.__module__.startswith("service.pages."):
            for method in route.methods or ():
                yield Address(method, route.path, None, route)


def _routes(router: Any) -> Iterator[APIRoute]:
    for route in router.routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router)
        else:
            assert isinstance(route, Mount | Route)
