"""Model proposers against endpoints that misbehave in every way at once, through the real queue and database."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy import Engine, select

from db.engine import read_session
from db.queues import BUILD, CONTROL, PROPOSE
from db.tables.core import ProposalRow
from evaluator.types import BuildReport
from evolution.types import Budget, ProposalOutcome, Run, RunConfig
from runtime.models import ModelEndpoint
from runtime.settings import Settings
from tests.db.world import World
from tests.support.scripted_llm import Cut, Drip, Fail, Garbage, Say, ScriptedLLM, Stall, Step
from tests.workers.work_items import FILE
from workers.context import Context
from workers.loop import work
from workers.models.usage import count
from workers.proposers import PROPOSERS, Proposers, Registered
from workers.proposers.model import ModelProposer

THREADS = 8
LIES: list[dict[str, Any] | None] = [
    None,
    {"prompt_tokens": 0, "completion_tokens": 0},
    {"prompt_tokens": 10**9, "completion_tokens": 1},
    {"prompt_tokens": -5, "completion_tokens": -5},
    {"prompt_tokens": "many", "completion_tokens": None},
    {"prompt_tokens": 500, "completion_tokens": 10**7},
]


class _Said:
    """Usage as an endpoint claims it."""

    def __init__(self, claim: dict[str, Any]) -> None:
        self.prompt_tokens, self.completion_tokens = claim.get("prompt_tokens"), claim.get("completion_tokens")


@dataclass
class Naughty:
    """A script that is drawn from a seed, and the account of what it should have cost."""

    seed: int
    slow: float
    tokens: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, number: int, body: dict[str, Any]) -> Step:
        rng = Random(f"{self.seed}/{number}")
        step = self._step(number, rng)
        with self.lock:
            self.kinds[type(step).__name__ if not isinstance(step, Fail) else f"HTTP {step.status}"] += 1
            self.tokens += self._cost(step, body)
        return step

    def _step(self, number: int, rng: Random) -> Step:
        if number % 40 in range(6, 14):
            return Fail(429, retry_after=rng.choice(["0", "0.02", "0.05"]))
        if rng.random() < self.slow:
            return rng.choice([Stall(), Drip(), Drip(headers=True)])
        good = f"Fused.\n```python\n{FILE}# speed=0.{number}7 {self.seed}\n```\n"
        steps: list[Step] = [Say(good, pieces=rng.randint(1, 30)) for _ in range(8)]
        steps += [
            Say(good, usage=rng.choice(LIES)),
            Say(good, usage=rng.choice(LIES)),
            Say(f"```python\n{FILE}# speed=0.5 again\n```"),
            Say("First I would think about the memory traffic. " * rng.randint(1, 20)),
            Say(f"Well.\n```python\n{FILE}", finish="length"),
            Say(f"Notes.\n```cuda\n__global__ void f();\n```\nAnd:\n```python\n{FILE}# speed=0.{number}8 b\n```\nBye."),
            Cut(f"```python\n{FILE[: rng.randint(1, len(FILE))]}"),
            Fail(rng.choice([500, 502, 503])),
            Garbage(),
        ]
        return rng.choice(steps)

    @staticmethod
    def _cost(step: Step, body: dict[str, Any]) -> int:
        """Return the charge of a client that reads the whole step, once."""
        prompt = "\n".join(message["content"] for message in body["messages"])
        claim: object = None
        if isinstance(step, Say) and step.usage == "true":
            said = sum(len(message["content"].split()) for message in body["messages"])
            claim = _Said({"prompt_tokens": said, "completion_tokens": len(step.text.split())})
        elif isinstance(step, Say) and isinstance(step.usage, dict):
            claim = _Said(step.usage)
        elif not isinstance(step, Say | Cut):
            return 0
        usage = count(claim, prompt=prompt, reply=step.text, max_output_tokens=body["max_tokens"])
        return usage.input_tokens + usage.output_tokens


@dataclass(frozen=True)
class Figures:
    """Return the outcome."""

    run: Run
    outcomes: Counter[str]
    steps: Counter[str]
    asked_tokens: int
    proposal_tokens: int
    proposal_usd: float
    slowest_s: float
    wall_s: float


def torture(engine: Engine, budget: Budget, *, seed: int, slow: float, stall_s: float, most_s: float) -> Figures:
    """One Run whose models are two such endpoints, until it ends or `most_s` have passed."""
    scripts = [Naughty(seed, slow), Naughty(seed + 1000, slow)]
    world = World(engine)
    world.build = lambda item: BuildReport(  # type: ignore[method-assign]
        candidate_hash=item.candidate.hash, signature=item.candidate.hash
    )
    config = RunConfig(proposers=("model",), in_flight=THREADS, stagnation_candidates=10**6, seed=seed)
    started, stop = time.monotonic(), threading.Event()
    with ScriptedLLM(scripts[0]) as one, ScriptedLLM(scripts[1]) as two:
        context = _context(engine, one, two, stall_s)
        run = world.start(budget, config)
        threads = [threading.Thread(target=_propose, args=(context, stop), daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        while not world.run(run.id).status.ended and time.monotonic() - started < most_s:
            job = world.claim(CONTROL, BUILD, "cpu")
            if job is not None:
                world.work(job)
            else:
                stop.wait(0.005)
        stop.set()
        for thread in threads:
            thread.join(most_s)
    return _figures(engine, world.run(run.id), scripts, time.monotonic() - started)


def _context(engine: Engine, one: ScriptedLLM, two: ScriptedLLM, stall_s: float) -> Context:
    endpoints = tuple(
        ModelEndpoint(
            name=name,
            base_url=server.base_url,
            model="m",
            weight=weight,
            stall_s=stall_s,
            timeout_s=stall_s,
            max_output_tokens=2000,
            max_concurrency=6,
            usd_per_million_input=price,
            usd_per_million_output=4 * price,
        )
        for name, server, weight, price in (("one", one, 3.0, 1.0), ("two", two, 1.0, 5.0))
    )
    settings = Settings(models=endpoints, database_url=engine.url.render_as_string(False), proposal_deadline_s=20.0)
    context = Context(settings)
    context.engine = engine
    context.nudge = lambda queues: None  # type: ignore[method-assign]
    quick = Registered(lambda given: ModelProposer(given, backoff_s=0.01, open_s=0.2))
    context.proposers = Proposers(settings, {**PROPOSERS, "model": quick})
    return context


def _propose(context: Context, stop: threading.Event) -> None:
    while not stop.is_set():
        if not work(context, PROPOSE):
            stop.wait(0.01)


def _figures(engine: Engine, run: Run, scripts: list[Naughty], wall_s: float) -> Figures:
    with read_session(engine) as s:
        rows = s.scalars(select(ProposalRow).where(ProposalRow.run_id == run.id)).all()
    paid = [row for row in rows if row.operator != "tune"]
    return Figures(
        run=run,
        outcomes=Counter(row.outcome or "open" for row in paid),
        steps=scripts[0].kinds + scripts[1].kinds,
        asked_tokens=scripts[0].tokens + scripts[1].tokens,
        proposal_tokens=sum(row.input_tokens + row.output_tokens for row in rows),
        proposal_usd=sum(row.usd for row in rows),
        slowest_s=max(row.duration_s for row in rows),
        wall_s=wall_s,
    )


def check(figures: Figures, budget: Budget) -> None:
    """No wedge, no double charge, budgets exact."""
    run = figures.run
    assert run.status.ended, figures
    assert "open" not in figures.outcomes
    assert run.spend.tokens == figures.proposal_tokens
    assert abs(run.spend.usd - figures.proposal_usd) < 1e-9
    assert run.spend.tokens == figures.asked_tokens, "a call was charged twice, or not at all"
    assert budget.candidates is None or run.spend.candidates <= budget.candidates
    assert budget.tokens is None or run.spend.tokens <= budget.tokens
    assert budget.usd is None or run.spend.usd <= budget.usd
    assert figures.slowest_s < 21.0
    assert figures.outcomes[ProposalOutcome.CANDIDATE] > 0
