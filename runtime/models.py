"""Model endpoints: the operator's list of OpenAI-compatible servers, with their prices and limits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runtime.errors import SettingsError

RESERVED_NAMES = frozenset({"model", "synthesiser", "seed", "replay"})


class ModelEndpoint(BaseModel):
    """One OpenAI-compatible endpoint. `api_key_env` names the variable that holds its key, never the key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="Name of this endpoint in runs, prices and pages."
    )
    base_url: str = Field(
        pattern=r"^https?://", description="Base URL of the API, with its /v1: http://127.0.0.1:8000/v1."
    )
    model: str = Field(min_length=1, description="The model's name at that endpoint.")
    api_key_env: str | None = Field(
        default=None, description="Name of the environment variable that holds the key; none for local servers."
    )
    weight: float = Field(default=1.0, gt=0, description="Share of proposals where several endpoints are configured.")
    usd_per_million_input: float | None = Field(
        default=None, ge=0, description="Price of a million prompt tokens; unset means unpriced, 0 means free."
    )
    usd_per_million_output: float | None = Field(
        default=None, ge=0, description="Price of a million reply tokens; unset means unpriced, 0 means free."
    )
    max_concurrency: int = Field(
        default=4, ge=1, le=256, description="Requests in flight at once from one worker process."
    )
    timeout_s: float = Field(default=600.0, gt=0, description="Deadline of one request, from connect to last byte.")
    stall_s: float = Field(
        default=300.0,
        gt=0,
        description="A streamed reply is aborted after this long without data; some models send none while they think.",
    )
    requests_per_minute: float | None = Field(
        default=None, gt=0, description="Rate limit of one worker process; unset: none."
    )
    tokens_per_minute: float | None = Field(
        default=None, gt=0, description="Rate limit of one worker process, in and out; unset: none."
    )
    max_output_tokens: int = Field(default=16384, ge=1, description="Token limit of each reply.")
    context_tokens: int = Field(default=32768, ge=1024, description="Prompts are cut to fit this with the reply.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature; unset: its default.")
    stream: bool = Field(default=True, description="Stream replies, so that a stalled one is noticed early.")
    reasoning: bool = Field(
        default=False, description="A reasoning model: its limit is sent as max_completion_tokens, thoughts included."
    )
    body: Mapping[str, Any] = Field(
        default_factory=dict, description='More fields of each request, like {"reasoning_effort": "high"}.'
    )
    headers: Mapping[str, str] = Field(default_factory=dict, description="Extra HTTP headers.")

    @property
    def priced(self) -> bool:
        """Tell whether both prices are known; a dollar budget is refused where one is not."""
        return self.usd_per_million_input is not None and self.usd_per_million_output is not None

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a call in dollars; an unpriced endpoint counts as 0."""
        return (
            input_tokens * (self.usd_per_million_input or 0.0) + output_tokens * (self.usd_per_million_output or 0.0)
        ) / 1e6

    def api_key(self) -> str:
        """Return the key from the environment, or a placeholder where none is needed. Raise SettingsError."""
        if self.api_key_env is None:
            return "none"
        key = os.environ.get(self.api_key_env, "")
        if not key:
            raise SettingsError(f"endpoint {self.name}: set {self.api_key_env} to its API key")
        return key


def read_endpoints(value: object) -> tuple[ModelEndpoint, ...]:
    """Read endpoints from a list, JSON text, or the path of a JSON file. Raise SettingsError naming the fault."""
    items = _load(value)
    try:
        endpoints = tuple(
            item if isinstance(item, ModelEndpoint) else ModelEndpoint.model_validate(item) for item in items
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"WARPWRIGHT_MODELS: {where}: {first['msg']}") from error
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"WARPWRIGHT_MODELS: two endpoints are called {name!r}; give each its own name")
        if name in RESERVED_NAMES:
            raise SettingsError(f"WARPWRIGHT_MODELS: {name!r} is a proposer's name; call the endpoint something else")
    return endpoints


def _load(value: object) -> list[Any]:
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return []
        if not text.startswith("["):
            try:
                text = Path(text).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(f"WARPWRIGHT_MODELS: neither a JSON list nor a readable file: {error}") from error
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise SettingsError(f"WARPWRIGHT_MODELS: not JSON: {error}") from error
    if not isinstance(value, list | tuple):
        raise SettingsError("WARPWRIGHT_MODELS: write a JSON list of endpoints")
    return list(value)
