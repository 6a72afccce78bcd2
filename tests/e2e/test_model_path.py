"""A Run whose Champion came from a language model: a scripted endpoint, the embedded stack, the judge, the API."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.test_optimize import command, ended
from tests.support.quick_judge import COMMAND as QUICK_JUDGE
from tests.support.scripted_llm import Fail, Say, ScriptedLLM, Step
from warpwright.errors import ExitCode

WAIT_S = 270.0

pytestmark = [pytest.mark.timeout(330), pytest.mark.stack]

# Who sorts a row four times does four times what must be done, and no compiler knows that: a gain that is confirmed on
# the busiest machine, too (twice would not be). And nothing but sorting: what is computed element by element, the
# compiled Baseline would first compile.
PROBLEM = '''"""Each row in falling and in rising order, and likewise doubled."""
import torch, torch.nn as nn
WORKLOADS = [{"name": "small", "rows": 8, "hidden": 1024}]
class Model(nn.Module):
    def forward(self, x):
        falling, rising = torch.sort(x, dim=-1, descending=True).values, torch.sort(x, dim=-1).values
        return falling, rising, torch.sort(2 * x, dim=-1, descending=True).values, torch.sort(2 * x, dim=-1).values
def get_inputs(rows=8, hidden=1024):
    return [torch.randn(rows, hidden)]
'''
FILE = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        rising = torch.sort(x, dim=-1).values
        falling = rising.flip(-1)
        return falling, rising, 2 * falling, 2 * rising
"""
WRONG = FILE.replace("flip(-1)", "roll(1, -1)")


def script(number: int, body: dict[str, Any]) -> Step:
    """First an overloaded server and prose, then a wrong kernel, then the right one, over and over."""
    steps: list[Step] = [
        Fail(429, retry_after="0"),
        Say("I would sort once."),
        Say(f"Like this:\n```python\n{WRONG}```"),
    ]
    return steps[number] if number < len(steps) else Say(f"Once.\n```python\n{FILE}```")


@contextmanager
def service(data: Path, models: list[dict[str, Any]]) -> Iterator[str]:
    """`warpwright serve` with these endpoints; gives its address. Asked to end, it ends well and leaves no process."""
    told = {"WARPWRIGHT_MODELS": json.dumps(models), "WARPWRIGHT_JUDGE_COMMAND": QUICK_JUDGE}
    with command(data, "serve", "--port", "0", "--json", **told) as process:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
        ended(process, data, signal.SIGTERM, ExitCode.OK)


def follow(http: httpx2.Client, run_id: str) -> dict[str, Any]:
    """Read the event stream until the Run has ended; the Run."""
    with http.stream("GET", f"/runs/{run_id}/events", headers={"Accept": "text/event-stream"}, timeout=WAIT_S) as lines:
        for line in lines.iter_lines():
            if line.startswith("event: run.ended"):
                break
    run: dict[str, Any] = http.get(f"/runs/{run_id}").json()
    return run


def test_a_champion_from_the_model_path(tmp_path: Path) -> None:
    with ScriptedLLM(script) as model:
        endpoint = {
            "name": "scripted", "base_url": model.base_url, "model": "m",
            "usd_per_million_input": 1.0, "usd_per_million_output": 2.0, "max_concurrency": 1,
        }  # fmt: skip
        with service(tmp_path, [endpoint]) as url, httpx2.Client(base_url=f"{url}/api/v1", timeout=30) as http:
            body = {
                "problem": {"name": "smallest", "source": PROBLEM},
                "device": "cpu",
                "budget": {"candidates": 2, "usd": 1.0},
                "config": {"proposers": ["scripted"], "in_flight": 2, "islands": 1, "stagnation_candidates": 6},
            }
            created = http.post("/runs", json=body)
            assert created.status_code == 202, created.text
            run = follow(http, created.json()["id"])
            proposals = http.get(f"/runs/{run['id']}/proposals").json()["items"]
            whole = [http.get(f"/proposals/{proposal['id']}").json() for proposal in proposals]
            judged = [http.get(f"/candidates/{p['candidate_id']}").json() for p in whole if p["candidate_id"]]
            champion = run["champion_id"] and http.get(f"/candidates/{run['champion_id']}").json()
    assert champion, (run, [(p["outcome"], p["detail"]) for p in whole], judged)
    assert champion["proposer"] == "scripted"
    assert champion["confirmed"]
    made = next(p for p in whole if p["candidate_id"] == champion["id"])
    assert "in falling and in rising order" in made["prompt"]
    assert "Once." in made["reply"]
    assert made["input_tokens"] > 0
    assert made["output_tokens"] > 0
    assert made["prompt_template"].partition("@")[2]
    assert any("I would sort once." in p["prompt"] for p in whole)
    assert run["spend"]["tokens"] == sum(p["input_tokens"] + p["output_tokens"] for p in whole)
    assert run["spend"]["usd"] == pytest.approx(sum(p["usd"] for p in whole))
