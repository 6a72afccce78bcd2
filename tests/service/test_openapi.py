"""The OpenAPI document: committed as it is, complete, and without anything that hangs loose."""

from __future__ import annotations

import json

from fastapi import FastAPI

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
