"""Make the primary rows: Projects, Problems, Runs, Candidates, samples. All others are derived from them in SQL."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.seed.load import Loader, Row
from bench.seed.plan import RunPlan
from bench.seed.sources import LANGUAGES, Writer, prompt
from evaluator.schema import to_json
from evaluator.types import content_hash
from evolution.types import Budget, RunConfig

DAY_MS = 86_400_000
AGE_DAYS = 180
SAMPLE_DAYS = 30
"""Raw samples are kept this long, as retention would leave them."""
PROPOSERS = (
    ("synthesiser", "create", ""),
    ("synthesiser", "tune", ""),
    ("synthesiser", "tune", ""),
    ("model", "rewrite", "qwen3-coder-480b"),
    ("model", "diff", "deepseek-v4"),
    ("model", "repair", "qwen3-coder-480b"),
)
VERDICTS = (
    *(("PASSED", "integrity"),) * 46,
    *(("INCORRECT_VALUES", "correctness"),) * 20,
    *(("BUILD_ERROR", "build"),) * 14,
    *(("RUNTIME_ERROR", "correctness"),) * 6,
    *(("TIMEOUT", "correctness"),) * 3,
    *(("INVALID_SUBMISSION", "screen"),) * 4,
    *(("POLICY_VIOLATION", "screen"),) * 2,
    *(("INCORRECT_SHAPE", "correctness"),) * 2,
    ("REWARD_HACK", "integrity"),
    ("OUT_OF_MEMORY", "correctness"),
    ("NONDETERMINISTIC", "correctness"),
)
NICHES = tuple(
    f"{memory}/{compute}/{parallel}"
    for memory in ("plain", "vector", "shared", "async")
    for compute in ("plain", "reduce", "online", "tensor-core")
    for parallel in ("row-a-block", "persistent", "split")
)
CANDIDATE = (
    "id", "run_id", "problem_id", "proposal_id", "number", "hash", "language", "source", "proposer", "operator",
    "model", "variant", "island", "parents", "family", "tunables", "configuration", "configuration_key", "signature",
    "niche", "verdict", "stage", "reason", "speedup", "speedup_low", "speedup_high", "confidence",
    "elite", "confirms", "confirmed", "created_at",
)  # fmt: skip
RUN = (
    "id", "project_id", "problem_id", "device_kind", "status", "end_reason", "message", "budget", "config",
    "admission_id", "baseline_id", "champion_id", "best_id", "best_speedup", "spent_candidates", "spent_tokens",
    "spent_usd", "spent_device_s", "judged", "judged_s", "decisions", "proposals", "candidates", "advances", "last_seq",
    "created_at", "started_at", "ended_at",
)  # fmt: skip
SAMPLE = ("owner_id", "workload", "series", "data")
MILESTONE = (
    "run_id", "ordinal", "candidate_id", "number", "speedup", "speedup_low", "speedup_high", "confirmed", "evaluations",
    "device_s", "wall_s", "usd", "at",
)  # fmt: skip
EVENTS_BEFORE = 3
"""run.created, problem.admitted, run.status: then come four events for each Candidate, then run.ended."""

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def stamp(ms: int) -> str:
    """Return the time part of an id: ten digits, as in db.ids."""
    return "".join(_DIGITS[ms >> shift & 31] for shift in range(45, -5, -5))


TEXT = ("run_id", "hash", "data")
GUIDE = "0" * 64
"""The part of every prompt that is the same throughout a Run."""


@dataclass
class Made:
    """The totals of one Run."""

    run: Row
    candidates: list[Row]
    samples: list[Row] = field(default_factory=list)
    milestones: list[Row] = field(default_factory=list)
    texts: list[Row] = field(default_factory=list)


@dataclass
class World:
    """Makes Runs with everything in them; `champions` is filled as they promote."""

    loader: Loader
    rng: random.Random
    now_ms: int
    problem_ids: list[str]
    project_ids: list[str]
    runs: int
    champions: list[Row] = field(default_factory=list)
    _best: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._writer = Writer(self.rng)
        self._samples = [struct.pack("<40d", *(self.rng.gauss(20, 1) for _ in range(40))) for _ in range(64)]
        self._guide = zlib.compress(prompt(self.rng).encode())
        self._config = json.dumps(to_json(RunConfig(proposers=("synthesiser", "model"))))
        self._budget = json.dumps(to_json(Budget(candidates=200_000, usd=500.0)))

    def make(self, plan: RunPlan) -> Made:
        """Make one Run, ended unless it is among the newest."""
        begin = self.now_ms - AGE_DAYS * DAY_MS + plan.number * (AGE_DAYS * DAY_MS // self.runs)
        step = max(2, min(20_000, 10 * DAY_MS // plan.size, (self.now_ms - begin) // (plan.size + 1)))
        run_id = f"run_{stamp(begin)}{plan.number & 0xFFFF:04x}{self.rng.getrandbits(48):012x}"
        problem_id = self.problem_ids[plan.problem]
        device = "cuda" if plan.problem % 3 else "cpu"
        made = Made(run=(), candidates=[])
        elite: dict[str, int] = {}
        best: tuple[float, int] = (0.0, -1)
        for number, values in enumerate(self._candidates(plan, begin, step), start=1):
            row = (values[0], run_id, problem_id, *values[1:])
            made.candidates.append(row)
            speedup = row[23]
            if speedup is None:
                continue
            design = row[14] or row[0]
            if design not in elite or made.candidates[elite[design]][23] < speedup:
                elite[design] = number - 1
            if speedup > best[0]:
                best = (speedup, number - 1)
                made.milestones.append(_milestone(row, len(made.milestones) + 1, step))
        for index in elite.values():
            made.candidates[index] = _changed(made.candidates[index], elite=True)
        champion = self._promote(plan, made, best, problem_id, device, run_id)
        ended = plan.number < self.runs - max(3, self.runs // 200) and plan.size > 1
        made.run = self._run(plan, run_id, problem_id, device, made, best, champion, begin, step, ended=ended)
        self._keep_samples(made, begin, step)
        self._keep_texts(made, run_id)
        return made

    def _candidates(self, plan: RunPlan, begin: int, step: int) -> Iterator[tuple[Any, ...]]:
        rng, moment = self.rng, self.loader.moment
        language = LANGUAGES[plan.problem % len(LANGUAGES)]
        ids: list[str] = []
        level = 0.6
        for number in range(1, plan.size + 1):
            ms = begin + number * step
            tail = f"{stamp(ms)}{number & 0xFFFF:04x}{rng.getrandbits(48):012x}"
            source = self._writer.source(language, number)
            proposer, operator, model = PROPOSERS[int(rng.random() * len(PROPOSERS))]
            verdict: str | None
            verdict, stage = VERDICTS[int(rng.random() * len(VERDICTS))]
            reason = "right and timed" if verdict == "PASSED" else _reason(verdict, number, rng)
            speedup = round(level * rng.lognormvariate(0, 0.25), 6) if verdict == "PASSED" else None
            if speedup is not None and speedup > level:
                level += (min(speedup, 8.0) - level) * 0.02
            if number % 50 == 0:
                verdict, stage, speedup, reason = None, "", None, f"the same program as {ids[-1]}"
            known = min(len(ids), 400)
            parents = (
                [ids[-1 - int(rng.random() ** 2 * known)] for _ in range(1 + (operator == "rewrite"))] if known else []
            )
            if operator == "create":
                parents = []
            tuned = operator == "tune"
            ids.append(f"cand_{tail}")
            yield (
                f"cand_{tail}", f"prop_{tail}", number, content_hash(source), language, source, proposer, operator,
                model, "default", number % 2, json.dumps(list(dict.fromkeys(parents))),
                f"{number // 64:064x}" if tuned else None,
                '{"BLOCK": [64, 128, 256, 512]}' if tuned else "{}", '{"BLOCK": 128}' if tuned else "{}",
                f'{{"BLOCK":{number % 64}}}' if tuned else None, f"sig{number}-{tail}",
                NICHES[int(rng.random() ** 2 * len(NICHES))], verdict, stage or None, reason, speedup,
                speedup and round(speedup * 0.98, 6), speedup and round(speedup * 1.02, 6), speedup and 0.95,
                False, 0, False, moment(ms),
            )  # fmt: skip

    def _promote(
        self, plan: RunPlan, made: Made, best: tuple[float, int], problem_id: str, device: str, run_id: str
    ) -> str | None:
        speedup, index = best
        if speedup <= max(1.02, self._best.get((problem_id, device), 0.0) * 1.02):
            return None
        self._best[problem_id, device] = speedup
        row = _changed(made.candidates[index], confirmed=True, confirms=1)
        evaluation_id = f"eval_{row[0][5:30]}z"
        made.candidates[index] = row
        ratio = {
            "against": "fastest",
            "value": speedup,
            "interval": {"low": row[24], "high": row[25], "confidence": 0.95},
        }
        self.champions.append(
            (
                f"champ_{row[0][5:]}", self.project_ids[plan.project], problem_id, run_id, row[0], evaluation_id,
                device, "NVIDIA H200" if device == "cuda" else "AMD EPYC 9554", speedup, json.dumps(ratio), "compile",
                row[-1],
            )
        )  # fmt: skip
        return str(row[0])

    def _run(
        self, plan: RunPlan, run_id: str, problem_id: str, device: str, made: Made, best: tuple[float, int],
        champion: str | None, begin: int, step: int, *, ended: bool,
    ) -> Row:  # fmt: skip
        moment, size = self.loader.moment, plan.size
        best_id = made.candidates[best[1]][0] if best[1] >= 0 else None
        reason = ("budget", "stagnated", "no_improvement")[plan.number % 3] if champion is None else "budget"
        return (
            run_id, self.project_ids[plan.project], problem_id, device, "finished" if ended else "running",
            reason if ended else None, "The budget is spent." if ended else "", self._budget, self._config,
            f"adm_{problem_id[5:]}", f"base_{problem_id[5:]}", champion, best_id, best[0] or None, size, size * 1800,
            size * 0.004, size * 1.5, size // 2, size * 0.7, size, size + size // 10, size, size,
            EVENTS_BEFORE + 4 * size + int(ended), moment(begin), moment(begin + 1),
            moment(begin + (size + 1) * step) if ended else None,
        )  # fmt: skip

    def _keep_texts(self, made: Made, run_id: str) -> None:
        """Keep the replies of a model. The prompt is the same for all of a Run."""
        said = [row for row in made.candidates if row[8] == "model"]
        if said:
            made.texts.append((run_id, GUIDE, self._guide))
        for row in said:
            made.texts.append((run_id, row[5], zlib.compress(f"Here it is.\n```python\n{row[7]}```\n".encode(), 1)))

    def _keep_samples(self, made: Made, begin: int, step: int) -> None:
        young = self.now_ms - SAMPLE_DAYS * DAY_MS
        for row in made.candidates:
            if row[20] == "PASSED" and (begin + row[4] * step > young or row[29]):
                for workload in ("decode", "prefill"):
                    for series in ("", "eager/graph", "compile/graph"):
                        data = self._samples[int(self.rng.random() * 64)]
                        made.samples.append((f"eval_{row[0][5:]}", workload, series, data))


def _reason(verdict: str, number: int, rng: random.Random) -> str:
    return f"{verdict.lower().replace('_', ' ')}: element {number * 37 % 4096} differs by {rng.random():.3g}"


def _milestone(row: Row, ordinal: int, step_ms: int) -> Row:
    """Return the moment at which a Candidate became its Run's best."""
    number = row[4]
    return (
        row[1], ordinal, row[0], number, row[23], row[24], row[25], False, number, number * 1.5,
        number * step_ms / 1000, number * 0.004, row[-1],
    )  # fmt: skip


def _changed(row: Row, **changes: object) -> Row:
    values = list(row)
    for name, value in changes.items():
        values[CANDIDATE.index(name)] = value
    return tuple(values)
