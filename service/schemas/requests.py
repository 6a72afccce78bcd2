"""Requests of the API: strict models. An unknown field is an error, so a typing error never passes as a default."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt, model_validator
from pydantic.config import JsonDict

from db.transitions.seeds import Heritage
from db.transitions.work.bundles import MOST_TASKS
from evaluator.languages import detect
from evaluator.types import Candidate, DeviceKind, Domain, Language
from evolution.types import MAX_SEEDS, Budget, RunConfig
from service.schemas.fields import (
    WHOLE,
    Amount,
    CandidateRef,
    Count,
    Name,
    ProblemRef,
    ProposerName,
    SizeName,
    SizeText,
    Source,
    Strict,
    Text,
    WebhookURL,
)

SizeNumber = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Sizes = Annotated[dict[SizeName, StrictBool | StrictInt | SizeNumber | SizeText], Field(min_length=1, max_length=50)]


class ProblemRequest(Strict):
    """A Problem to store: the text of a problem file. It is read here and executed only in the judge's cage."""

    name: Annotated[Name, Field(description="A display name.", examples=["rmsnorm_residual"])]
    source: Annotated[Source, Field(description="A Python module with `Model` (or `reference`) and `get_inputs`.")]
    description: Annotated[Text, Field(max_length=10_000)] | None = Field(
        default=None, description="Default: the module's docstring."
    )
    domain: Annotated[Domain, Field(strict=False)] | None = Field(
        default=None, description="Overrides the module's DOMAIN."
    )
    sizes: Annotated[list[Sizes], Field(max_length=50)] = Field(
        default=[],
        description="Adds a Workload for each: sizes that the recipes take, or read from constants of the module. "
        "Others are as in the first Workload.",
        examples=[[{"rows": 64}]],
    )


_COUNT: JsonDict = {"type": "integer", "minimum": 1, "maximum": 10**9}
_AMOUNT: JsonDict = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}
_LIMITS: JsonDict = {"candidates": _COUNT, "tokens": _COUNT, "usd": _AMOUNT, "device_s": _AMOUNT, "wall_s": _AMOUNT}


class BudgetRequest(Strict):
    """Hard limits; at least one. Checked before spending; work in flight at the limit is finished and charged."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name], "properties": {name: limit}} for name, limit in _LIMITS.items()],
            "examples": [{"candidates": 40, "wall_s": 600.0}],
        }
    )

    candidates: Count | None = Field(default=None, description="Maximum number of Candidates.")
    tokens: Count | None = Field(default=None, description="Tokens of language models, in and out.")
    usd: Amount | None = Field(default=None, description="US dollars.")
    device_s: Amount | None = Field(default=None, description="Seconds on a device; waiting is not charged.")
    wall_s: Amount | None = Field(default=None, description="Seconds from start to end.")

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if not self.model_fields_set or all(value is None for _, value in self):
            raise ValueError("set at least one limit: candidates, tokens, usd, device_s or wall_s")
        return self

    def budget(self) -> Budget:
        """Convert to a Budget."""
        return Budget(**self.model_dump())


class ConfigRequest(Strict):
    """The settings of the search; each has a default."""

    proposers: Annotated[list[ProposerName], Field(min_length=1, max_length=50)] | None = Field(
        default=None, description="Default: the synthesiser, and every configured model.", examples=[["synthesiser"]]
    )
    seed: Annotated[int, Field(ge=0, lt=2**53), WHOLE] = Field(default=0, description="Drives every random choice.")
    islands: Annotated[int, Field(ge=1, le=64), WHOLE] = 2
    in_flight: Annotated[int, Field(ge=1, le=256), WHOLE] = Field(default=4, description="Proposals in flight at once.")
    target_speedup: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="End once a confirmed Champion reaches this."
    )
    roofline_share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        default=0.95,
        description="End once a confirmed Champion attains this share of what a GPU's memory allows; null: never.",
    )
    stagnation_candidates: Annotated[int, Field(ge=1, le=10**6), WHOLE] = Field(
        default=40, description="End after this many Candidates without progress."
    )
    seed_sources: Annotated[list[Source], Field(max_length=50)] = Field(
        default=[], description="Sources of kernels to start from."
    )
    seed_candidates: Annotated[list[CandidateRef], Field(max_length=50)] = Field(
        default=[], description="Ids of stored Candidates of the same Problem to start from."
    )

    @model_validator(mode="after")
    def _few(self) -> Self:
        if len(self.seed_sources) + len(self.seed_candidates) > MAX_SEEDS:
            raise ValueError(f"a Run begins with at most {MAX_SEEDS} seeds, sources and candidates together")
        return self

    def config(self, default_proposers: tuple[str, ...]) -> RunConfig:
        """Convert to a RunConfig."""
        return RunConfig(
            proposers=default_proposers if self.proposers is None else tuple(self.proposers),
            seed=self.seed,
            islands=self.islands,
            in_flight=self.in_flight,
            target_speedup=self.target_speedup,
            roofline_share=self.roofline_share,
            stagnation_candidates=self.stagnation_candidates,
            seed_sources=tuple(self.seed_sources),
            seed_candidates=tuple(self.seed_candidates),
        )


class BundleRequest(Strict):
    """Work to give away in a file."""

    device: Annotated[DeviceKind, Field(strict=False)] = Field(description="The kind of device that will do it.")
    limit: Annotated[int, Field(ge=1, le=MOST_TASKS), WHOLE] = Field(
        default=200, description="Maximum number of tasks."
    )
    hours: Annotated[float, Field(gt=0, le=24 * 30, allow_inf_nan=False)] = Field(
        default=24.0, description="Hours until unanswered work returns to its queue."
    )


class AnswerRequest(Strict):
    """One line of a file of answers."""

    line: Annotated[str, Field(min_length=2)] = Field(description="The line, as `python -m evaluator work` wrote it.")


def _one_of(*names: tuple[str, str]) -> JsonDict:
    """Describe "exactly one of two" in the document."""
    (first, kind), (second, other) = names
    return {
        "oneOf": [
            {"required": [first], "properties": {first: {"type": kind}, second: {"type": "null"}}},
            {"required": [second], "properties": {second: {"type": other}, first: {"type": "null"}}},
        ]
    }


_ONE_PROBLEM = _one_of(("problem_id", "string"), ("problem", "object"))


class WebhookRequest(Strict):
    """A POST of JSON when the Run has ended, signed in `Warpwright-Signature: t=SECONDS,v1=HEX`.

    HEX is HMAC-SHA256 of "SECONDS.BODY" under the secret. It is tried for a minute; redirects are not followed, and
    internal addresses are refused.
    """

    url: WebhookURL
    secret: Annotated[
        str, Field(min_length=16, max_length=200, pattern=r"^[!-~]+$", json_schema_extra={"writeOnly": True})
    ]


class RunRequest(Strict):
    """A Run to start: of a stored Problem (`problem_id`) or of one given here (`problem`)."""

    model_config = ConfigDict(json_schema_extra=_ONE_PROBLEM)

    problem_id: ProblemRef | None = None
    problem: ProblemRequest | None = None
    device: Annotated[DeviceKind, Field(strict=False)] = Field(
        default=DeviceKind.CPU, description="The kind of device to optimise for."
    )
    budget: BudgetRequest
    config: ConfigRequest = ConfigRequest()
    webhook: WebhookRequest | None = Field(default=None, description="A webhook to call when the Run has ended.")

    @model_validator(mode="after")
    def _one_problem(self) -> Self:
        if (self.problem_id is None) == (self.problem is None):
            raise ValueError("give exactly one of problem_id and problem")
        return self


class ExtendRequest(Strict):
    """More budget for a Run: each limit is added to its present one. A Run that ended by its budget continues."""

    budget: BudgetRequest
    target_speedup: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="Replaces the Run's target."
    )


class ForkRequest(Strict):
    """A new Run of the same Problem and device, seeded from another Run."""

    budget: BudgetRequest
    config: ConfigRequest | None = Field(default=None, description="Default: the parent's, without its seeds.")
    heritage: Annotated[Heritage, Field(strict=False)] = Field(
        default=Heritage.POPULATION,
        description="Its seeds: every elite of the archive, or only confirmed Candidates.",
    )


class CandidateRequest(Strict):
    """A Candidate that a person or an agent wrote."""

    source: Annotated[Source, Field(description="A Python module with `ModelNew`.")]
    language: Annotated[Language, Field(strict=False)] | None = Field(
        default=None, description="Default: detected from the source."
    )
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,49}$")] = Field(
        default="hand", description="Its author; lists and the leaderboard show `external:BY`."
    )

    def candidate(self, parents: tuple[str, ...] = ()) -> Candidate:
        """Convert to a Candidate."""
        language = self.language if self.language is not None else detect(self.source)
        return Candidate(source=self.source, language=language, parents=parents, proposer=f"external:{self.by}")


class InjectRequest(CandidateRequest):
    """A Candidate to be judged within a live Run; it uses one of the Run's candidates."""

    parents: Annotated[list[CandidateRef], Field(max_length=8)] = Field(
        default=[], description="Candidates of this Run that it was made from."
    )


class EvaluationRequest(CandidateRequest):
    """A Candidate to be judged on its own: for a stored Problem (`problem_id`) or one given here (`problem`)."""

    model_config = ConfigDict(json_schema_extra=_ONE_PROBLEM)

    problem_id: ProblemRef | None = None
    problem: ProblemRequest | None = None
    device: Annotated[DeviceKind, Field(strict=False)] = Field(
        default=DeviceKind.CPU, description="The kind of device to judge on."
    )

    @model_validator(mode="after")
    def _one_problem(self) -> Self:
        if (self.problem_id is None) == (self.problem is None):
            raise ValueError("give exactly one of problem_id and problem")
        return self
