"""Examples for the OpenAPI document: one for every schema, built from its fields, so that none can be missing.

A field's example is its own, else one by schema and name, else one by type. A test validates each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ID = "01m7zx8m6v000sh0ht73vskrkt"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_REFERENCE = '''\
"""Root-mean-square norm with a residual."""
import torch
import torch.nn as nn

WORKLOADS = [{"name": "prefill", "rows": 4096}, {"name": "decode", "rows": 8}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024))

    def forward(self, x, residual):
        x = x + residual
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def get_inputs(rows=4096):
    return [torch.randn(rows, 1024), torch.randn(rows, 1024)]
'''
_KERNEL = """\
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024))

    def forward(self, x, residual):
        return torch.nn.functional.rms_norm(x + residual, (1024,), self.weight, 1e-6)
"""
_CONFIG: Mapping[str, Any] = {
    "target_speedup": None, "roofline_share": 0.95, "stagnation_candidates": 40, "islands": 2, "in_flight": 4,
    "seed": 0,
}  # fmt: skip
# By field name, everywhere.
_FIELDS: Mapping[str, Any] = {
    "problem_id": f"prob_{_ID}", "run_id": f"run_{_ID}", "candidate_id": f"cand_{_ID}", "champion_id": f"cand_{_ID}",
    "best_id": f"cand_{_ID}", "best_candidate_id": f"cand_{_ID}", "project_id": "default", "parents": [],
    "hash": _HASH, "problem_hash": _HASH, "candidate_hash": _HASH, "forked_from": None, "against_id": None,
    "name": "rmsnorm_residual", "problem_name": "rmsnorm_residual",
    "description": "Root-mean-square norm with a residual.",
    "source": _KERNEL, "seed_sources": [], "seed_candidates": [], "proposers": ["synthesiser"], "message": "",
    "proposer": "synthesiser", "operator": "create", "model": "", "variant": "default", "by": "agent-7", "group": "cpp",
    "status": "running", "end_reason": None, "ended_at": None, "deadline_at": None, "state": "settled",
    "verdict": "PASSED", "stage": "confirm", "outcome": "candidate", "reason": "right on every input, and faster",
    "language": "cpp", "device": "cpu", "device_kind": "cpu", "device_name": "AMD EPYC 9R14, one core",
    "fastest_baseline": "max-autotune-no-cudagraphs", "mode": "max-autotune-no-cudagraphs", "against": "fastest",
    "workload": "prefill", "clock": "calls", "series": "", "niche": "rowwise/vectorised/rows", "island": 0,
    "low": 1.62, "value": 1.71, "high": 1.8, "confidence": 0.999, "median_us": 412.5, "floor_us": 290.0,
    "samples_us": [411.8, 412.5, 413.9], "roofline": 0.7, "median_roofline": 0.7, "error_budget": None,
    "isolation": [], "warnings": [], "libraries": [], "mutates": [], "error": "", "detail": "", "next_cursor": None,
    "python": "3.11.9", "torch": "2.13.0", "triton": "3.7.1", "cuda": None, "driver": None, "compiler": "g++ 12.2.0",
    "uuid": "cpu-0-1", "queue": "cpu", "worker": "box:4711", "created_at": "2026-11-21T20:37:46.857050Z",
    "url": "https://ci.example.com/done", "error_id": None, "line": None, "errors": None, "needed": None,
    "started_at": "2026-11-21T20:37:49Z", "settled_at": "2026-11-21T20:38:02Z", "claimed_at": "2026-11-21T20:38:00Z",
    "confirmed_at": "2026-11-21T20:41:10Z", "promoted_at": "2026-11-21T20:41:10Z", "seen_at": "2026-11-21T20:41:00Z",
    "lease_until": "2026-11-21T20:38:15Z", "at": "2026-11-21T20:38:02Z", "revoked_at": None, "last_used_at": None,
    "expires_at": None, "expires_in_days": 90, "prompt": "", "reply": "", "plan": "", "prompt_template": "",
    "schema_version": 1, "languages": None,
}  # fmt: skip
# By schema and field, where one name has several meanings.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "ProblemRequest": {"source": _REFERENCE, "domain": None},
    "Problem": {"source": _REFERENCE},
    "RunRequest": {"problem": None, "webhook": None},
    "EvaluationRequest": {"problem": None, "language": None},
    "InjectRequest": {"language": None, "parents": [f"cand_{_ID}"]},
    "BudgetRequest": {"candidates": 40, "wall_s": 600.0, "tokens": None, "usd": None, "device_s": None},
    "Budget": {"candidates": 40, "wall_s": 600.0, "tokens": None, "usd": None, "device_s": None},
    "ConfigRequest": _CONFIG,
    "RunConfig": _CONFIG,
    "WebhookRequest": {"secret": "at least sixteen characters".replace(" ", "-")},
    "Webhook": {"state": "delivered", "status": 204, "attempts": 1},
    "ForkRequest": {"config": None, "heritage": "champions"},
    "ExtendRequest": {"target_speedup": 2.0},
    "ProblemDetails": {
        "type": "/errors/not-found", "title": "Not found", "status": 404,
        "detail": "There is no run with this id.",
    },
    "Event": {"kind": "evaluation.settled", "seq": 12, "data": {"candidate_id": f"cand_{_ID}", "verdict": "PASSED"}},
    "Evaluation": {"evidence": {"seeds": 8}, "duration_s": {"correctness": 1.2, "timing": 3.4}},
    "EvaluationRecord": {"kind": "confirm"},
    "Job": {"kind": "judge", "state": "claimed"},
    "Tally": {"kind": "confirm"},
    "Health": {"status": "ok", "checks": {"database": "ok", "broker": "ok"}},
    "Model": {"name": "big", "model": "big-model-1"},
    "SpendRow": {"name": "big-model-1", "runs": None},
    "Device": {"name": "AMD EPYC 9R14, one core", "facts": {"cores": 1}},
    "Workload": {"name": "prefill", "sizes": {"rows": 4096}, "device": None},
    "Ratio": {"workload": None},
    "Samples": {"workload": "prefill"},
}  # fmt: skip
_PREFIXES = {
    "Run": "run", "Problem": "prob", "Candidate": "cand", "EvaluationRecord": "eval", "Proposal": "prop", "Job": "job",
    "RunSummary": "run", "ProposalSummary": "prop", "ApiKey": "key", "NewApiKey": "key", "Audit": "audit",
    "LeaderboardEntry": "champ",
}  # fmt: skip


def add_examples(document: dict[str, Any]) -> None:
    """Add an example to every schema of a document, and to every JSON body of a request or an answer."""
    schemas: dict[str, Any] = document["components"]["schemas"]
    made = {name: example(name, schema, schemas) for name, schema in schemas.items()}
    for name, schema in schemas.items():
        schema["examples"] = [made[name]]
    for methods in document["paths"].values():
        for operation in methods.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for content in (one for body in bodies for one in body.get("content", {}).values()):
                reference = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                if reference in made:
                    content["example"] = made[reference]


def example(name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Return a valid value of a schema."""
    if "properties" not in schema:
        return _value("", schema, schemas)
    own = _OWN.get(name, {})
    found: dict[str, Any] = {}
    for field, inner in schema["properties"].items():
        if field == "id":
            found[field] = f"{_PREFIXES.get(name, name.lower()[:6])}_{_ID}"
        elif field in own:
            found[field] = own[field]
        elif given := inner.get("examples") or inner.get("anyOf", [{}])[0].get("examples"):
            found[field] = given[0]
        elif field in _FIELDS and _fits(_FIELDS[field], inner):
            found[field] = _FIELDS[field]
        else:
            found[field] = _value(field, inner, schemas)
    return found


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    """Tell whether a value has a type of the schema; references to other schemas are built from those."""
    kinds = {one.get("type") for one in schema.get("anyOf", [schema])}
    return _TYPES.get(type(value), "null") in kinds


def _value(field: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = schemas[name]
        words = target.get("enum")
        if words is not None:
            return _FIELDS[field] if _FIELDS.get(field) in words else words[0]
        return example(name, target, schemas)
    if "anyOf" in schema:
        return _value(field, schema["anyOf"][0], schemas)
    if "enum" in schema or "const" in schema:
        return (schema.get("enum") or [schema["const"]])[0]
    match schema.get("type"):
        case "array":
            return [_value(field, schema.get("items", {}), schemas)]
        case "object":
            return {}
        case "boolean":
            return False
        case "integer" | "number":
            least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            return max(1, least) if schema["type"] == "integer" else float(max(1.0, least))
        case "null":
            return None
    return field.replace("_", " ") or "text"
