"""The OpenAPI document: complete enough for a client, and committed (openapi.json; a test holds it to the code)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from service.examples import add_examples
from service.http.problem_details import ProblemDetails
from service.identity.authentication import SECURE_COOKIE
from service.middleware.authenticate import OPEN_PATHS

COMMITTED = Path(__file__).parent / "openapi.json"
VERSION = "1.0.0"
DESCRIPTION = """\
Give Warpwright a slow PyTorch operation; get back a kernel that is proved right and proved faster.

Store a Problem, start a Run, follow its events, download the winner. Times are microseconds (`_us`) or seconds (`_s`),
moments are ISO 8601 in UTC, ids sort by time. Errors are `application/problem+json` (RFC 9457). POSTs take an
`Idempotency-Key`. Lists answer `items` and `next_cursor`.
"""
TAGS = {
    "problems": "A reference to speed up, with its Workloads. Immutable, identified by its content.",
    "runs": "One optimisation of a Problem on a kind of device, with its budget, its events and its search state.",
    "candidates": "Kernels: origin, results, source.",
    "evaluations": "The judge's results of a Candidate, down to the samples; judges single kernels too.",
    "proposals": "Attempts to make a Candidate: prompt, reply, tokens, cost.",
    "leaderboard": "The Champion of every Problem on every device, past Champions, and summaries.",
    "downloads": "The best kernel as one file that verifies itself.",
    "fleet": "Devices, workers and queues.",
    "models": "Available language models, and the spend.",
    "access": "Keys, their scopes, the audit log.",
    "operations": "Endpoints for operators.",
}


def build(app: FastAPI) -> dict[str, Any]:
    """Return the document for `app`: FastAPI's, with the errors as really sent and with plain names."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title="Warpwright", version=VERSION, summary="Kernels, proved", description=DESCRIPTION, routes=app.routes
        )
        _errors(schema)
        schema["components"]["securitySchemes"] = {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key. A service that is bound to loopback and has no key answers without one.",
            }
        }
        schema["components"]["securitySchemes"]["session"] = {
            "type": "apiKey",
            "in": "cookie",
            "name": SECURE_COOKIE,
            "description": "A browser's session, had for a key at /login (`warpwright_session` where there is no TLS). "
            "What changes something brings X-CSRF-Token too.",
        }
        schema["security"] = [{"bearer": []}, {"session": []}]
        schema["tags"] = [{"name": name, "description": words} for name, words in TAGS.items()]
        for path in OPEN_PATHS & schema["paths"].keys():
            schema["paths"][path]["get"]["security"] = []
        app.openapi_schema = _plain_names(schema)
        add_examples(app.openapi_schema)
    return app.openapi_schema


def text(app: FastAPI) -> str:
    """Return the document as it is committed."""
    return json.dumps(build(app), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _errors(schema: dict[str, Any]) -> None:
    """Keep one schema for the routes' errors, and none of FastAPI's own."""
    components = schema["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    found = TypeAdapter(ProblemDetails).json_schema(ref_template="#/components/schemas/{model}")
    found = jsonable_encoder(found, exclude_none=True)
    components |= {**found.pop("$defs"), ProblemDetails.__name__: found}
    for path in schema["paths"].values():
        for operation in path.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]  # FastAPI's guess: an impossible id is a 404 here


# The registered Device, with its queue and time.
_RENAMED = {"ArmView": "ArmStatistics", "DeviceView": "RegisteredDevice"}


def _plain_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Name schemas by the glossary: `Candidate`, not the class that carries one."""
    names = schema["components"]["schemas"]
    renamed = {
        name: _RENAMED.get(name, name.removesuffix("View").removesuffix("Answer"))
        for name in names
        if name.endswith(("View", "Answer"))
    }
    document = json.dumps(schema)
    for old, new in renamed.items():
        if new in names:
            raise ValueError(f"two schemas would be called {new}")
        document = document.replace(f'"#/components/schemas/{old}"', f'"#/components/schemas/{new}"')
        document = document.replace(f'"{old}": {{', f'"{new}": {{').replace(f'"title": "{old}"', f'"title": "{new}"')
    result: dict[str, Any] = json.loads(document)
    return result
