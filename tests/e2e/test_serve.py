"""The whole path on a service that runs: a language model's kernel, the judge in its cage, HTTP, and the file.

The tests share one stack. Each of its processes imports for seconds.
"""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.commands import START_S, check, command, ended, processes_of
from tests.support.quick_judge import COMMAND as QUICK_JUDGE
from tests.support.scripted_llm import Fail, Say, ScriptedLLM, Step
from warpwright.errors import ExitCode

WAIT_S = 270.0
FEWEST_CORES = 2  # for the judge and for what it times: on one core it could not look, and would promote nothing

pytestmark = [pytest.mark.timeout(600), pytest.mark.stack]

# Who sorts a row twelve times does twelve times what must be done: a gain that few pairs of processes confirm, on the
# busiest machine, too.
PROBLEM = '''"""Each row times one to twelve, in rising order. Attempt NUMBER."""
import torch, torch.nn as nn
WORKLOADS = [{"name": "small", "rows": 2, "hidden": 2048}]
class Model(nn.Module):
    def forward(self, x):
        return torch.stack([torch.sort(x * k, dim=-1).values for k in range(1, 13)])
def get_inputs(rows=2, hidden=2048):
    return [torch.randn(rows, hidden)]
'''
FILE = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=-1).values * torch.arange(1.0, 13.0)[:, None, None]
"""
WRONG = FILE.replace("torch.sort(x, dim=-1).values", "x")
CRASHES = """import os, torch
class Model(torch.nn.Module):
    def forward(self, x): os.abort()
def get_inputs(): return [torch.randn(8)]
"""


ATTEMPTS = itertools.count(1)


class Script:
    """First an overloaded server and prose, then a wrong kernel, then the right one, over and over: each attempt."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __call__(self, number: int, body: dict[str, Any]) -> Step:
        (attempt,) = set(re.findall(r"Attempt \d+", json.dumps(body)))
        number, self._asked[attempt] = self._asked[attempt], self._asked[attempt] + 1
        steps: list[Step] = [
            Fail(429, retry_after="0"),
            Say("I would sort once."),
            Say(f"Like this:\n```python\n{WRONG}```"),
        ]
        return steps[number] if number < len(steps) else Say(f"Once.\n```python\n{FILE}```")


@dataclass(frozen=True)
class Service:
    """A running `warpwright serve` on its data folder."""

    data: Path
    url: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a scripted model and a quick judge. In the end it is killed, and no process of it is left."""
    data = tmp_path_factory.mktemp("data")
    with ScriptedLLM(Script()) as model:
        endpoint = {
            "name": "scripted", "base_url": model.base_url, "model": "m",
            "usd_per_million_input": 1.0, "usd_per_million_output": 2.0, "max_concurrency": 1,
        }  # fmt: skip
        told = {
            "WARPWRIGHT_MODELS": json.dumps([endpoint]),
            "WARPWRIGHT_JUDGE_COMMAND": QUICK_JUDGE,
            "WARPWRIGHT_PROPOSAL_REPAIRS": "0",  # each judge that starts takes seconds
        }
        with command(data, "serve", "--port", "0", "--json", **told) as process:
            assert process.stdout is not None
            yield Service(data, str(json.loads(process.stdout.readline())["url"]), process)
            ended(process, data, signal.SIGKILL, -signal.SIGKILL)


def follow(http: httpx2.Client, run_id: str) -> dict[str, Any]:
    """Read the event stream until the Run has ended; the Run."""
    with http.stream("GET", f"/runs/{run_id}/events", headers={"Accept": "text/event-stream"}, timeout=WAIT_S) as lines:
        for line in lines.iter_lines():
            if line.startswith("event: run.ended"):
                break
    run: dict[str, Any] = http.get(f"/runs/{run_id}").json()
    return run


@pytest.mark.clock
def test_a_champion_from_a_model_is_taken_home(service: Service, tmp_path: Path) -> None:
    with httpx2.Client(base_url=f"{service.url}/api/v1", timeout=30) as http:
        body = {
            "problem": {"name": "smallest", "source": PROBLEM.replace("NUMBER", str(next(ATTEMPTS)))},
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
        told = [*((p["outcome"], p["detail"]) for p in whole), *((c["verdict"], c["reason"]) for c in judged)]
        assert run["champion_id"], f"{run['message']} {told}"
        champion = http.get(f"/candidates/{run['champion_id']}").json()
    assert champion["proposer"] == "scripted"
    assert champion["confirmed"]
    made = next(p for p in whole if p["candidate_id"] == champion["id"])
    assert "one to twelve, in rising order" in made["prompt"]
    assert "Once." in made["reply"]
    assert made["input_tokens"] > 0
    assert made["output_tokens"] > 0
    assert made["prompt_template"].partition("@")[2]
    assert any("I would sort once." in p["prompt"] for p in whole)
    assert run["spend"]["tokens"] == sum(p["input_tokens"] + p["output_tokens"] for p in whole)
    assert run["spend"]["usd"] == pytest.approx(sum(p["usd"] for p in whole))

    best = tmp_path / "best.py"
    answered(service, "download", run["id"], "-o", str(best))
    check(best)
    assert len(json.loads(answered(service, "leaderboard", "--json"))) == 1


def answered(service: Service, *arguments: str) -> str:
    """Return what a command prints that finds the service by its data folder."""
    with command(service.data, *arguments) as process:
        output, said = process.communicate(timeout=START_S)
    assert process.returncode == ExitCode.OK, said
    assert sum(line.startswith("api ") for line in processes_of(service.data).values()) == 1, (
        "a second stack was started"
    )
    return output


def test_a_second_service_on_the_same_data_folder_is_refused(service: Service) -> None:
    with command(service.data, "serve", "--port", "0") as second:
        _, said = second.communicate(timeout=START_S)
    assert second.returncode == ExitCode.BAD_USAGE
    assert service.url in said


def test_a_reference_that_crashes_is_refused_by_the_judge(service: Service, tmp_path: Path) -> None:
    problem = tmp_path / "problem.py"
    problem.write_text(CRASHES, encoding="utf-8")
    with command(service.data, "optimize", str(problem), "--device", "cpu", "--seconds", "60") as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.BAD_USAGE, said
    assert "refused" in said
