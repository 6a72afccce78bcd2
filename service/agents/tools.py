"""The tools themselves. Each asks our own REST API as its caller; what it waits for, it waits for without a thread."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context as ToolContext
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from starlette.types import ASGIApp

from evaluator.types import DeviceKind, Language
from service.agents.answers import (
    ChampionLine,
    Judgement,
    Kernel,
    KnownProblem,
    ProblemLine,
    Problems,
    RunLine,
    RunState,
    Speedup,
    StoredProblem,
)
from service.agents.reading import describe, judgement_of, known_problem, next_step, state_of, workloads_of
from service.agents.rest import Caller
from service.agents.waiting import wait_for
from service.context import Context

LONGEST_WAIT_S = 300.0
RECENT = 12

ProblemId = Annotated[str, Field(description="A problem's id (prob_...).", max_length=60)]
RunId = Annotated[str, Field(description="A run's id (run_...).", max_length=60)]
Device = Annotated[Literal["cpu", "cuda"], Field(description="The kind of device.")]
Wait = Annotated[float, Field(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for the end, with progress.")]
Seconds = Annotated[float | None, Field(gt=0, description="Limit of the run's time.")]
Candidates = Annotated[int | None, Field(gt=0, description="Limit of the number of kernels.")]
Dollars = Annotated[float | None, Field(gt=0, description="Limit of the cost of model calls.")]
Source = Annotated[str, Field(description="A Python module with `class ModelNew`.")]
LanguageName = Annotated[Language | None, Field(description="Default: cpp on a CPU, triton on a GPU.")]


class Tools:
    """The tools of one application."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    def _caller(self, ctx: ToolContext) -> Caller:
        request = ctx.request_context.request
        if request is None:
            raise ToolError("These tools answer over HTTP only: connect to /mcp.")
        caller = Caller(self._app, request)
        if caller.who.csrf_token is not None:
            raise ToolError(
                "These tools take no browser's session: send an API key (Authorization: Bearer KEY) and no cookie."
            )
        return caller

    async def find_problems(
        self,
        ctx: ToolContext,
        text: Annotated[str, Field(description="Part of a name; empty: all.", max_length=100)] = "",
        public: Annotated[bool, Field(description="Public ones instead of your project's.")] = False,
    ) -> Problems:
        """List stored problems, newest first. Look here before you submit one."""
        found = await self._caller(ctx).get("/problems", q=text.strip() or None, public=public, limit=50)
        lines = [
            ProblemLine(problem_id=one["id"], name=one["name"], description=one["description"], public=one["public"])
            for one in found["items"]
        ]
        advice = "describe_problem tells all that is known of one." if lines else "submit_problem stores one."
        return Problems(problems=lines, next=advice)

    async def submit_problem(
        self,
        ctx: ToolContext,
        name: Annotated[str, Field(description="A short name.", min_length=1, max_length=200)],
        source: Annotated[str, Field(description="A Python module with `class Model` and `get_inputs`.")],
        sizes: Annotated[
            list[dict[str, Any]] | None, Field(description="Further workloads: the arguments of get_inputs by name.")
        ] = None,
        domain: Annotated[
            Literal["declared", "general"] | None,
            Field(description="declared: the workloads and nearby sizes; general: every size and stride."),
        ] = None,
    ) -> StoredProblem:
        """Store a slow PyTorch operation as a problem. The same content is stored once. Nothing is executed yet."""
        body = {"name": name, "source": source, "sizes": sizes or None, "domain": domain}
        made = await self._caller(ctx).post("/problems", body)
        return StoredProblem(
            problem_id=made["id"],
            name=made["name"],
            domain=made["domain"],
            workloads=workloads_of(made),
            next=f"describe_problem({made['id']}) gives the rules and what is known; then judge_kernel or start_run.",
        )

    async def describe_problem(
        self, ctx: ToolContext, problem_id: ProblemId, device: Device = "cpu", language: LanguageName = None
    ) -> KnownProblem:
        """Describe a problem: its runs, champions, lessons, the judge's rules, and how to write kernels for it."""
        caller = self._caller(ctx)
        shown = await caller.get(f"/problems/{problem_id}")
        runs = await caller.get("/runs", problem_id=problem_id, device=device, limit=10)
        champions = await caller.get("/leaderboard", problem_id=problem_id)
        how = language or (Language.CPP if device == "cpu" else Language.TRITON)
        known = await known_problem(self._context, caller.who, problem_id, DeviceKind(device), how)
        return KnownProblem(
            problem_id=problem_id,
            name=shown["name"],
            source=known.source,
            workloads=workloads_of(shown),
            rules=known.rules.judge,
            timing=known.rules.timing,
            guide=known.rules.guide,
            runs=[
                RunLine(
                    run_id=one["id"],
                    device=one["device_kind"],
                    status=one["status"],
                    end_reason=one["end_reason"],
                    speedup=Speedup.read(one["speedup"], confirmed=one["confirmed"], outdated=one["outdated"]),
                )
                for one in runs["items"]
            ],
            champions=[_champion(one) for one in champions["items"]],
            lessons=list(known.lessons),
            next="judge_kernel judges a kernel that you write; start_run lets Warpwright search for one.",
        )

    async def judge_kernel(
        self,
        ctx: ToolContext,
        problem_id: ProblemId,
        source: Source,
        device: Device = "cpu",
        by: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,49}$", description="Your name.")] = "agent",
        wait_s: Wait = 240.0,
    ) -> Judgement:
        """Judge a kernel: right on many inputs, and how fast beside the fastest baseline.

        One that beats the champion, or every baseline, is confirmed in new processes and becomes the champion.
        """
        caller = self._caller(ctx)
        made = await caller.post(
            "/evaluations", {"problem_id": problem_id, "source": source, "device": device, "by": by}
        )
        try:
            return await self._judged(ctx, caller, made["id"], made["run_id"], wait_s)
        except ToolError as error:
            raise ToolError(f"{error}\nThe evaluation is {made['id']}: call get_judgement with it.") from error

    async def get_judgement(
        self,
        ctx: ToolContext,
        evaluation_id: Annotated[str, Field(description="An evaluation's id (eval_...).", max_length=60)],
        wait_s: Wait = 0.0,
    ) -> Judgement:
        """Return the result of judge_kernel again, or wait for it."""
        caller = self._caller(ctx)
        record = await caller.get(f"/evaluations/{evaluation_id}")
        return await self._judged(ctx, caller, evaluation_id, record["run_id"], wait_s)

    async def _judged(
        self, ctx: ToolContext, caller: Caller, evaluation_id: str, run_id: str, wait_s: float
    ) -> Judgement:
        async def read() -> dict[str, Any]:
            found: dict[str, Any] = await caller.get(f"/runs/{run_id}")
            return found

        run = await self._wait(ctx, caller, run_id, read, wait_s)
        record = await caller.get(f"/evaluations/{evaluation_id}")
        every = await caller.get(f"/candidates/{record['candidate_id']}/evaluations")
        candidate = await caller.get(f"/candidates/{record['candidate_id']}")
        told = judgement_of(run, record, every["items"], candidate)
        told.evidence = await describe(self._context, caller.who, told, record, every["items"], candidate)
        return told

    async def _wait(self, ctx: ToolContext, caller: Caller, run_id: str, read: Any, wait_s: float) -> dict[str, Any]:
        first = await read()
        if wait_s <= 0 or first["end_reason"] is not None:
            return dict(first)
        waited: dict[str, Any] = await wait_for(
            self._context.hub,
            run_id,
            read,
            first,
            lambda run: run["end_reason"] is not None,
            known=first["last_seq"],
            owner=caller.who.credential,
            wait_s=wait_s,
            context=ctx,
        )
        return waited

    async def start_run(
        self,
        ctx: ToolContext,
        problem_id: ProblemId,
        device: Device = "cpu",
        seconds: Seconds = None,
        candidates: Candidates = None,
        usd: Dollars = None,
        proposers: Annotated[
            list[str] | None, Field(description="Only these; ['synthesiser'] asks no model and costs no money.")
        ] = None,
        seed_kernels: Annotated[list[str] | None, Field(description="Sources of kernels to start from.")] = None,
    ) -> RunState:
        """Let Warpwright search for a faster kernel within a budget. It goes on by itself; run_state follows it."""
        budget = {"wall_s": seconds, "candidates": candidates, "usd": usd}
        given = {name: value for name, value in budget.items() if value is not None} or {"wall_s": 120.0}
        config: dict[str, Any] = {"proposers": proposers} if proposers else {}
        config |= {"seed_sources": seed_kernels} if seed_kernels else {}
        caller = self._caller(ctx)
        body = {"problem_id": problem_id, "device": device, "budget": given, "config": config or None}
        return await self._state(caller, await caller.post("/runs", body))

    async def run_state(self, ctx: ToolContext, run_id: RunId, wait_s: Wait = 0.0) -> RunState:
        """Return a run's state and its best kernel so far; with wait_s, wait for its end and report progress."""
        caller = self._caller(ctx)

        async def read() -> dict[str, Any]:
            found: dict[str, Any] = await caller.get(f"/runs/{run_id}")
            return found

        return await self._state(caller, await self._wait(ctx, caller, run_id, read, wait_s))

    async def _state(self, caller: Caller, run: dict[str, Any]) -> RunState:
        events = await caller.get(f"/runs/{run['id']}/events", after=max(0, run["last_seq"] - RECENT))
        champions = await caller.get(f"/problems/{run['problem_id']}/champions")
        best = await caller.get(f"/candidates/{run['best_id']}") if run["best_id"] else None
        return state_of(run, events["items"], champions["items"], best)

    async def best_kernel(
        self,
        ctx: ToolContext,
        run_id: Annotated[str | None, Field(description="A run's id, or null.")] = None,
        problem_id: Annotated[str | None, Field(description="A problem's id, for its champion, or null.")] = None,
        device: Device = "cpu",
        form: Annotated[
            Literal["source", "file"],
            Field(description="source: the kernel alone, to read and change; file: the module to take home."),
        ] = "source",
    ) -> Kernel:
        """Return the best kernel of a run, or the champion of a problem. An unconfirmed one is marked so."""
        if (run_id is None) == (problem_id is None):
            raise ToolError("Give exactly one of run_id and problem_id.")
        caller = self._caller(ctx)
        if run_id is not None:
            run = await caller.get(f"/runs/{run_id}")
            candidate_id, where, query = run["champion_id"] or run["best_id"], f"/runs/{run_id}", {}
            if candidate_id is None:
                if run["end_reason"] is not None:
                    raise ToolError(f"No kernel of this run passed, and it has ended. {next_step(run)}")
                raise ToolError("No kernel of this run has passed yet. run_state with wait_s waits for one.")
        else:
            rows = (await caller.get("/leaderboard", problem_id=problem_id, device=device))["items"]
            if not rows:
                raise ToolError(
                    f"This problem has no champion on {device} yet. judge_kernel or start_run may make one."
                )
            candidate_id, where, query = rows[0]["candidate_id"], f"/problems/{problem_id}", {"device": device}
        candidate = await caller.get(f"/candidates/{candidate_id}")
        if form == "file":
            text = await caller.text(f"{where}/download", **query, held_out="false")
        else:
            text = await caller.text(f"/candidates/{candidate_id}/source")
        champion = next(
            (
                one
                for one in (await caller.get(f"/problems/{candidate['problem_id']}/champions"))["items"]
                if one["candidate_id"] == candidate_id
            ),
            None,
        )
        ratio = champion["against_fastest"] if champion else candidate["speedup"]
        return Kernel(
            candidate_id=candidate_id,
            language=candidate["language"],
            speedup=Speedup.read(
                ratio, confirmed=champion is not None, outdated=champion is None and candidate["outdated"]
            ),
            text=text,
            next="Save a file and use its ModelNew in place of Model; python FILE --check checks it there."
            if form == "file"
            else "Change it and judge_kernel the result, or ask with form='file' for the module to take home.",
        )

    async def resume_run(
        self,
        ctx: ToolContext,
        run_id: RunId,
        seconds: Seconds = None,
        candidates: Candidates = None,
        usd: Dollars = None,
    ) -> RunState:
        """Continue a run: a paused one as it is, an ended one with more budget, which is added to its limits."""
        caller = self._caller(ctx)
        budget = {"wall_s": seconds, "candidates": candidates, "usd": usd}
        more = {name: value for name, value in budget.items() if value is not None}
        run = await caller.get(f"/runs/{run_id}")
        if run["end_reason"] is not None and not more:
            raise ToolError(f"The run has ended ({run['end_reason']}): give seconds, candidates or usd to add to it.")
        if more:
            run = await caller.post(f"/runs/{run_id}/extend", {"budget": more})
        if run["status"] == "paused":
            run = await caller.post(f"/runs/{run_id}/resume")
        return await self._state(caller, run)

    async def stop_run(self, ctx: ToolContext, run_id: RunId) -> RunState:
        """End a run now. Its results are kept; it cannot be resumed. One that has ended stays as it is."""
        caller = self._caller(ctx)
        return await self._state(caller, await caller.post(f"/runs/{run_id}/cancel"))


def _champion(row: dict[str, Any]) -> ChampionLine:
    speedup = Speedup.read(row["against_fastest"], confirmed=True)
    assert speedup is not None
    return ChampionLine(
        candidate_id=row["candidate_id"],
        run_id=row["run_id"],
        device=row["device_kind"],
        device_name=row["device_name"],
        language=row["language"],
        by=row["model"] or row["proposer"],
        fastest_baseline=row["fastest_baseline"],
        speedup=speedup,
    )


READS = {"read_only_hint": True, "destructive_hint": False, "idempotent_hint": True, "open_world_hint": False}
WRITES = {"read_only_hint": False, "destructive_hint": False, "idempotent_hint": False, "open_world_hint": False}
ANNOTATIONS: dict[str, dict[str, bool]] = {
    "find_problems": READS,
    "describe_problem": READS,
    "get_judgement": READS,
    "run_state": READS,
    "best_kernel": READS,
    "submit_problem": {**WRITES, "idempotent_hint": True},
    "judge_kernel": WRITES,
    "start_run": {**WRITES, "open_world_hint": True},
    "resume_run": {**WRITES, "open_world_hint": True},
    "stop_run": {**WRITES, "destructive_hint": True, "idempotent_hint": True},
}
"""Every tool, with hints for its client. A run may ask language models, so it reaches the open world."""
