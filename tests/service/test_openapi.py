"""The OpenAPI document: committed as it is, complete, and without anything that hangs loose."""

from __future__ import annotations

import json
import re

import jsonschema
from fastapi import FastAPI
from starlette.testclient import TestClient

from service import openapi


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


def test_every_tag_is_described_and_every_schema_is_used(app: FastAPI) -> None:
    document = openapi.build(app)
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert {tag for operation in operations for tag in operation["tags"]} == {tag["name"] for tag in document["tags"]}
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
    schemas = document["components"]["schemas"]
    used: set[str] = set()
    wanted = _named(document["paths"])
    while wanted:
        used |= wanted
        wanted = {inner for name in wanted for inner in _named(schemas[name])} - used
    assert used == set(schemas)


def _named(value: object) -> set[str]:
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value)))


def test_every_example_is_what_its_schema_takes(app: FastAPI) -> None:
    document = openapi.build(app)
    for name, schema in document["components"]["schemas"].items():
        whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        (given,) = schema["examples"]
        problems = list(jsonschema.Draft202012Validator(whole).iter_errors(given))
        assert not problems, f"{name}: {problems[0].message}"


def test_every_json_body_has_an_example(app: FastAPI) -> None:
    for path, methods in openapi.build(app)["paths"].items():
        for operation in methods.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (body.get("content", {}) for body in bodies):
                for kind, media in content.items():
                    assert "json" not in kind or "example" in media, path


def test_the_examples_of_requests_are_taken(app: FastAPI, client: TestClient) -> None:
    """The documented examples work."""
    schemas = openapi.build(app)["components"]["schemas"]
    problem = client.post("/api/v1/problems", json=schemas["ProblemRequest"]["examples"][0])
    assert problem.status_code == 201, problem.text
    for path, name in (("runs", "RunRequest"), ("evaluations", "EvaluationRequest")):
        body = {**schemas[name]["examples"][0], "problem_id": problem.json()["id"]}
        response = client.post(f"/api/v1/{path}", json=body)
        assert response.status_code == 202, response.text
