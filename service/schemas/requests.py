"""What the API takes: strict models. An unknown field is an error, so that a typing error never passes as a default."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from evaluator.types import DeviceKind, Domain
from evolution.types import Budget, RunConfig
from service.schemas.fields import WHOLE, Amount, Count, Name, ProposerName, Source, Strict, Text


class ProblemRequest(Strict):
    """A Problem to store: the text of a problem file. It is read here and executed only in the judge's cage."""

    name: Annotated[Name, Field(description="What people call it.", examples=["rmsnorm_residual"])]
    source: Annotated[Source, Field(description="A Python module with `Model` (or `reference`) and `get_inputs`.")]
    description: Annotated[Text, Field(max_length=10_000)] | None = Field(
        default=None, description="Default: the module's docstring."
    )
    domain: Annotated[Domain, Field(strict=False)] | None = Field(
        default=None, description="Overrides the module's DOMAIN."
    )


_COUNT: JsonDict = {"type": "integer", "minimum": 1, "maximum": 10**9}
_AMOUNT: JsonDict = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}
_LIMITS: JsonDict = {"candidates": _COUNT, "tokens": _COUNT, "usd": _AMOUNT, "device_s": _AMOUNT, "wall_s": _AMOUNT}


class BudgetRequest(Strict):
    """Hard limits; at least one. Checked before spending."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name], "properties": {name: limit}} for name, limit in _LIMITS.items()],
            "examples": [{"candidates": 40, "wall_s": 600.0}],
        }
    )

    candidates: Count | None = Field(default=None, description="How many Candidates at most.")
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
        """The Budget that these limits mean."""
        return Budget(**self.model_dump())


class ConfigRequest(Strict):
    """How the Run searches; everything has a default."""

    proposers: Annotated[list[ProposerName], Field(min_length=1, max_length=50)] | None = Field(
        default=None, description="Default: the synthesiser, and every configured model.", examples=[["synthesiser"]]
    )
    seed: Annotated[int, Field(ge=0, lt=2**63), WHOLE] = Field(default=0, description="Drives every random choice.")
    islands: Annotated[int, Field(ge=1, le=64), WHOLE] = 2
    in_flight: Annotated[int, Field(ge=1, le=256), WHOLE] = Field(
        default=4, description="Proposals in the works at once."
    )
    target_speedup: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="End once a confirmed Champion reaches this."
    )
    stagnation_candidates: Annotated[int, Field(ge=1, le=10**6), WHOLE] = Field(
        default=40, description="End after so many Candidates without progress."
    )
    seed_sources: Annotated[list[Source], Field(max_length=50)] = Field(
        default=[], description="Candidate sources to begin with."
    )

    def config(self, default_proposers: tuple[str, ...]) -> RunConfig:
        """The RunConfig that these choices mean."""
        return RunConfig(
            proposers=default_proposers if self.proposers is None else tuple(self.proposers),
            seed=self.seed,
            islands=self.islands,
            in_flight=self.in_flight,
            target_speedup=self.target_speedup,
            stagnation_candidates=self.stagnation_candidates,
            seed_sources=tuple(self.seed_sources),
        )


class RunRequest(Strict):
    """A Run to start: of a stored Problem (`problem_id`) or of one given here (`problem`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": [given],
                    "properties": {given: {"type": kind}, other: {"type": "null"}},
                }
                for given, kind, other in (("problem_id", "string", "problem"), ("problem", "object", "problem_id"))
            ]
        }
    )

    problem_id: Annotated[str, Field(max_length=100)] | None = None
    problem: ProblemRequest | None = None
    device: Annotated[DeviceKind, Field(strict=False)] = Field(
        default=DeviceKind.CPU, description="The kind of device to optimise for."
    )
    budget: BudgetRequest
    config: ConfigRequest = ConfigRequest()

    @model_validator(mode="after")
    def _one_problem(self) -> Self:
        if (self.problem_id is None) == (self.problem is None):
            raise ValueError("give exactly one of problem_id and problem")
        return self
