"""A small HTTP server with the part of the API that the client needs; tests set every reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

RUN_ID = "run_1"


def run_object(**changes: Any) -> dict[str, Any]:
    return {
        "id": RUN_ID, "problem_id": "prob_1", "device_kind": "cpu", "status": "finished", "end_reason": "budget",
        "message": "", "champion_id": "cand_2", "best_id": "cand_2", "project_id": "default", "budget": {},
        "config": {}, "spend": {"candidates": 2}, "created_at": "2026-01-02T03:04:05Z", **changes,
    }  # fmt: skip


def run_summary(number: int, **changes: Any) -> dict[str, Any]:
    shown = {"problem_name": "addition", "speedup": ratio(1.5), "confirmed": True}
    return {**run_object(id=f"run_{number}"), **shown, **changes}


def ratio(value: float, against: str = "fastest", workload: str | None = None) -> dict[str, Any]:
    interval = {"low": value - 0.1, "high": value + 0.1, "confidence": 0.95}
    return {"against": against, "value": value, "interval": interval, "workload": workload}


def candidate_object(number: int, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"cand_{number}", "run_id": RUN_ID, "problem_id": "prob_1", "number": number, "language": "cpp",
        "proposer": "synthesiser", "operator": "create", "verdict": verdict, "stage": "confirm", "reason": "because",
        "speedup": ratio(1.5) if verdict == "PASSED" else None, "confirmed": verdict == "PASSED", "hash": "0" * 64,
        "model": "", "island": 0, "parents": [], "created_at": "2026-01-02T03:04:05Z", **changes,
    }  # fmt: skip


def evaluation_object(stage: str) -> dict[str, Any]:
    times = {"clock": "calls", "workload": "w", "samples_us": [], "interval_us": {"low": 90.0, "high": 110.0}}
    baselines = [{**times, "mode": "eager", "median_us": 200.0}, {**times, "mode": "compile", "median_us": 150.0}]
    return {
        "candidate_hash": "0" * 64, "problem_hash": "0" * 64,
        "verdict": "PASSED", "stage": stage, "reason": "right and timed", "duration_s": {"build": 0.5, stage: 2.0},
        "measurements": [{**times, "median_us": 100.0, "baselines": baselines}],
        "speedups": [ratio(2.0, "eager"), ratio(1.5), ratio(1.5, workload="w")],
    }  # fmt: skip


def record_object(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"eval_{result['stage']}", "candidate_id": "cand_2", "run_id": RUN_ID, "problem_id": "prob_1",
        "device_kind": "cpu", "device_name": "a processor", "kind": "judge", "state": "settled", "against_id": None,
        "verdict": "PASSED", "stage": result["stage"], "reason": "", "device_s": 2.0, "created_at": "",
        "settled_at": None, "result": result,
    }  # fmt: skip


def champion_object(**changes: Any) -> dict[str, Any]:
    return {
        "id": "champ_1", "problem_id": "prob_1", "problem_name": "addition", "device_kind": "cpu",
        "device_name": "a processor", "run_id": RUN_ID, "candidate_id": "cand_2", "language": "cpp",
        "proposer": "synthesiser", "model": "", "fastest_baseline": "compile", "against_fastest": ratio(1.5),
        "against_eager": ratio(2.0, "eager"), "confirmed_at": "2026-01-02T03:04:05Z", **changes,
    }  # fmt: skip


def key_object(**changes: Any) -> dict[str, Any]:
    return {
        "id": "key_1", "name": "nightly", "prefix": "wwk_abcd", "scope": "submit", "project_id": "default",
        "created_by": "local", "created_at": "2026-01-02T03:04:05Z", "last_used_at": None, "expires_at": None,
        "revoked_at": None, **changes,
    }  # fmt: skip


def event_object(seq: int, kind: str, /, **data: Any) -> dict[str, Any]:
    return {"run_id": RUN_ID, "seq": seq, "kind": kind, "created_at": "2026-01-02T03:04:05Z", "data": data}


EVENTS = [
    event_object(1, "run.created"),
    event_object(2, "problem.admitted"),
    event_object(3, "candidate.created", number=1),
    event_object(4, "evaluation.settled", number=1, verdict="BUILD_ERROR", reason="line 3: no such thing"),
    event_object(5, "evaluation.settled", number=2, verdict="PASSED", kind="judge", speedup=1.5),
    event_object(6, "champion.promoted", number=2, speedup=1.5, low=1.4),
    event_object(7, "run.ended", status="finished", reason="budget"),
]


@dataclass
class FakeApi:
    """Served answers and the requests that came. `breaks` holds event numbers after which a stream is cut off once."""

    url: str = ""
    run: dict[str, Any] = field(default_factory=run_object)
    runs: list[dict[str, Any]] = field(default_factory=lambda: [run_summary(n) for n in range(5)])
    candidates: list[dict[str, Any]] = field(
        default_factory=lambda: [candidate_object(1, "BUILD_ERROR"), candidate_object(2, "PASSED")]
    )
    events: list[dict[str, Any]] = field(default_factory=lambda: list(EVENTS))
    leaderboard: list[dict[str, Any]] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)
    workers: list[str] = field(default_factory=lambda: ["cpu", "gpu.cuda"])  # their queues
    bundle: str = ""
    kernel: str = "# the kernel\n"
    champion: str | None = None
    problem_source: str = ""
    known_keys: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    archive: bytes = b""
    stages: list[str] = field(default_factory=lambda: ["timing", "confirm"])  # of the second candidate's evaluations
    breaks: list[int] = field(default_factory=list)
    refuse: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    resumed_from: list[str] = field(default_factory=list)

    def reply(self, method: str, path: str, query: dict[str, list[str]]) -> Any:
        """The JSON (or text) for a request, or None for 404."""
        base = "/api/v1"
        if path == "/readyz":
            return {"status": "ok", "checks": {}}
        if path in (f"{base}/problems", f"{base}/problems/prob_1"):
            stored = {
                "id": "prob_1", "name": "addition", "hash": "0" * 64, "description": "", "allow_library": "allowed",
                "bitwise": False, "created_at": "", "domain": "declared", "error_budget": None, "mutates": [],
                "precision": "exact", "train": False, "workloads": [], "source": self.problem_source,
            }  # fmt: skip
            if method == "POST" or path.endswith("prob_1"):
                return stored
            return {"items": [stored] if query["q"][0] in self.known_keys else [], "next_cursor": None}
        if path == f"{base}/bundles":
            made = {"device_kind": "cuda", "tasks": 1, "created_at": "", "expires_at": "tomorrow"}
            return {"id": "bndl_1", **made, "text": self.bundle}
        if path.startswith(f"{base}/bundles/") and path.endswith("/answers"):
            return {"job_id": "job_1", "outcome": self.outcomes.pop(0), "detail": "because"}
        if path.startswith(f"{base}/bundles/") and path.endswith("/release"):
            return {"released": 3}
        if path == f"{base}/models":
            return {"items": self.models, "next_cursor": None}
        if path == f"{base}/workers":
            idle = {"claimed_at": None, "kind": None, "lease_until": None, "worker": "box:1"}
            return {"items": [{**idle, "queue": queue} for queue in self.workers], "next_cursor": None}
        if path == f"{base}/keys":
            made = {"key": "wwk_secret", **key_object()}
            return made if method == "POST" else {"items": [key_object()], "next_cursor": None}
        if path == f"{base}/keys/key_1":
            return key_object(revoked_at="2026-01-03T00:00:00Z")
        if path == f"{base}/runs" and method == "POST":
            return {**self.run, "status": "queued", "end_reason": None}
        if path == f"{base}/runs":
            start = int(query.get("cursor", ["0"])[0])
            more = str(start + 2) if start + 2 < len(self.runs) else None
            return {"items": self.runs[start : start + 2], "next_cursor": more}
        if path == f"{base}/runs/{RUN_ID}/cancel":
            return {**self.run, "status": "cancelled", "end_reason": "cancelled"}
        if path == f"{base}/runs/{RUN_ID}/candidates":
            return {"items": self.candidates, "next_cursor": None}
        if path.endswith("/evaluations"):
            judged = path == f"{base}/candidates/cand_2/evaluations"
            items = [evaluation_object(stage) for stage in self.stages] if judged else []
            return {"items": [record_object(item) for item in items], "next_cursor": None}
        if path == f"{base}/leaderboard":
            device = query.get("device", [""])[0]
            found = [row for row in self.leaderboard if device in ("", row["device_kind"])]
            return {"items": found, "next_cursor": None}
        if path == f"{base}/runs/{RUN_ID}/download" and query.get("format", ["py"]) != ["py"]:
            return self.archive
        if path == f"{base}/runs/{RUN_ID}/download":
            return self.kernel
        if path == f"{base}/runs/{RUN_ID}/recording":
            return "PK, and so on"
        if path == f"{base}/problems/prob_1/download":
            return self.champion or f"# the champion on {query['device'][0]}\n"
        return self.run if path == f"{base}/runs/{RUN_ID}" else None


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            api.bodies.append(json.loads(self.rfile.read(length) or b"{}"))
            self._answer("POST")

        def do_DELETE(self) -> None:
            self._answer("DELETE")

        def do_GET(self) -> None:
            self._answer("GET")

        def _answer(self, method: str) -> None:
            parts = urlsplit(self.path)
            api.asked.append((method, parts.path))
            if parts.path in api.refuse:
                status, problem = api.refuse[parts.path]
                return self._send(status, json.dumps(problem), "application/problem+json")
            if parts.path.endswith("/events") and "event-stream" in self.headers.get("accept", ""):
                return self._stream()
            if parts.path.endswith("/events"):
                after = int(parse_qs(parts.query).get("after", ["0"])[0])
                items = [event for event in api.events if event["seq"] > after]
                return self._send(200, json.dumps({"items": items, "next_cursor": None}), "application/json")
            value = api.reply(method, parts.path, parse_qs(parts.query))
            if value is None:
                problem = {"type": "https://x/problems/not-found", "title": "Nothing here", "detail": "no such thing"}
                return self._send(404, json.dumps(problem), "application/problem+json")
            if isinstance(value, str | bytes):
                return self._send(200, value, "text/x-python" if isinstance(value, str) else "application/zip")
            return self._send(200, json.dumps(value), "application/json")

        def _send(self, status: int, content: str | bytes, kind: str) -> None:
            data = content.encode() if isinstance(content, str) else content
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self) -> None:
            api.resumed_from.append(self.headers.get("last-event-id", ""))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b": hello\n\n")
            after = int(self.headers.get("last-event-id") or 0)
            for event in api.events:
                if event["seq"] <= after:
                    continue
                text = f"id: {event['seq']}\nevent: {event['kind']}\ndata: {json.dumps(event)}\n\n"
                self.wfile.write(text.encode())
                if event is api.events[-1] and api.run["end_reason"] is None:
                    api.run.update(status="finished", end_reason="budget")
                if event["seq"] in api.breaks:
                    api.breaks.remove(event["seq"])
                    break
            self.close_connection = True

    return Handler


@contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    """Serve it on a free loopback port for the length of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
