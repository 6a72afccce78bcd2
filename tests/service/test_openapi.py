"""The OpenAPI document: committed as it is, and true under random requests."""

from __future__ import annotations

import json

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method
from sqlalchemy import Engine

from runtime.settings import Settings
from service import openapi
from service.app import create_app
from tests.db.world import World


def test_the_committed_document_is_the_code_s(app: FastAPI) -> None:
    assert openapi.COMMITTED.read_text(encoding="utf-8") == openapi.text(app), "run: python -m service openapi"


def test_every_operation_is_named_once_and_documents_its_errors(app: FastAPI) -> None:
    document = openapi.build(app)
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if not path.startswith("/api/"):
                continue
            assert {"400", "401", "403", "500"} <= set(operation["responses"])
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"]
    assert "View" not in json.dumps(list(document["components"]["schemas"]))


@pytest.fixture(scope="module")
def schema(settings: Settings, database: Engine) -> BaseSchema:
    # An application of its own: every case runs its lifespan.
    named = settings.model_copy(update={"allowed_hosts": ("testserver",)})
    own = create_app(named, engine=database, send_nudges=lambda queues: None)
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", own)


@pytest.fixture
def populated(engine: Engine, finished: str, world: World) -> World:
    """A database with a finished Run in it, and one that waits."""
    world.start()
    return world


def _requests(operation: APIOperation) -> st.SearchStrategy[Case]:
    """Requests that fit the document, and requests that do not."""
    modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
    return st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])


def test_random_requests_get_documented_answers(schema: BaseSchema, populated: World, finished: str) -> None:
    run = populated.run(finished)
    known = {"runs": run.id, "problems": run.problem_id, "candidates": run.champion_id}
    # /readyz truthfully answers 503 here: there is no broker.
    operations = [op for op in (result.ok() for result in schema.get_all_operations()) if op.path != "/readyz"]
    assert len(operations) > 20
    for operation in operations:

        @hypothesis_settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=_requests(operation), real=st.booleans())
        def ask(case: Case, real: bool) -> None:
            parts = case.operation.path.split("/")
            if real and "id" in case.path_parameters and parts[3] in known:
                case.path_parameters["id"] = known[parts[3]]
            # That a source must be a Problem, and that Allow is right, is tested elsewhere: a schema cannot say it.
            case.call_and_validate(excluded_checks=[unsupported_method, positive_data_acceptance])

        ask()
