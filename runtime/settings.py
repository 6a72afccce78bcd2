"""Every setting of service and workers, read from WARPWRIGHT_* variables, each with its meaning."""

from __future__ import annotations

import re
import shlex
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from evolution.arms import ENUMERATORS
from runtime.errors import SettingsError
from runtime.models import ModelEndpoint, read_endpoints

PREFIX = "WARPWRIGHT_"


class Settings(BaseSettings):
    """The whole configuration. Unknown WARPWRIGHT_* variables are ignored; wrong values are refused at start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True)

    # Where state lives
    database_url: str = Field(
        default="sqlite:///warpwright-data/warpwright.db",
        description="SQLAlchemy URL: sqlite:////absolute/path.db, or postgresql+psycopg://user:password@host/name.",
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0", description="Redis or Valkey that carries nudges; it holds no state."
    )
    data_dir: Path = Field(default=Path("warpwright-data"), description="Folder for logs and replay files.")

    # Service
    host: str = Field(default="127.0.0.1", description="Address that the service listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port that the service listens on.")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("127.0.0.1", "localhost", "[::1]"),
        description="Accepted Host headers, separated by commas; a port is ignored.",
    )
    max_request_bytes: int = Field(default=2 * 2**20, ge=1024, description="Largest accepted HTTP request body.")
    api_key: str | None = Field(
        default=None,
        repr=False,
        description="The operator's first key; beyond loopback this, or a key made with `python -m service keys`.",
    )
    session_hours: float = Field(default=12.0, gt=0, le=24 * 90, description="How long a browser stays signed in.")
    requests_per_s: float = Field(
        default=100.0, ge=0, description="Sustained requests a second of a key, and of an address; 0: no limit."
    )
    request_burst: int = Field(default=1000, ge=1, description="Requests allowed at once before that limit.")
    wrong_keys_per_minute: float = Field(
        default=6.0, ge=0, description="Wrong keys a minute of an address, after the first ten; 0: no limit."
    )
    trusted_proxies: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of reverse proxies, separated by commas: their X-Forwarded-For is trusted.",
    )
    event_poll_s: float = Field(default=0.2, gt=0, description="Interval at which the event tailer reads new events.")

    # Logging
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="Minimum log level.")
    log_format: Literal["console", "json"] = Field(default="console", description="Format of log lines, one per event.")

    # Queue
    lease_s: float = Field(default=15.0, gt=0, description="Lifetime of a claim without a heartbeat.")
    heartbeat_s: float = Field(default=3.0, gt=0, description="Interval at which a worker renews its job's lease.")
    sweep_interval_s: float = Field(default=2.0, gt=0, description="Interval at which the sweeper finds stuck work.")
    sample_days: float = Field(
        default=90.0,
        ge=0,
        description="Days that raw samples are kept; 0 keeps all. Medians, intervals and Champions' samples stay.",
    )
    nudge_expires_s: float = Field(default=30.0, gt=0, description="A nudge older than this is dropped unread.")

    # Proposers
    models: Annotated[tuple[ModelEndpoint, ...], NoDecode] = Field(
        default=(), description="Model endpoints: a JSON list, or the path of a JSON file that holds one."
    )
    propose_threads: int = Field(default=4, ge=1, le=256, description="Proposals made at once by a propose worker.")
    proposal_deadline_s: float = Field(default=900.0, gt=0, description="Total time of one proposal, retries included.")
    proposal_repairs: int = Field(
        default=2,
        ge=0,
        le=10,
        description="How often one proposal may go back to its model because the kernel does not build"
        " or is a duplicate.",
    )
    trace_ahead: bool = Field(
        default=True,
        description="Start the tracing process with each propose worker, not at the first trace.",
    )
    synthesis_deadline_s: float = Field(default=120.0, gt=0, description="Total time of one synthesised proposal.")
    prompt_tokens: int = Field(default=24000, ge=1000, description="Largest prompt; the least useful parts go first.")
    max_reply_bytes: int = Field(default=2**20, ge=1024, description="A longer reply is cut off and refused.")
    replay_dir: Path | None = Field(
        default=None, description="Folder of recorded proposals; `replay:NAME` is read from here alone. Unset: none."
    )

    # Webhooks
    webhook_deadline_s: float = Field(
        default=60.0, gt=0, description="Total time of one webhook delivery, retries included."
    )
    webhook_internal_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Internal hosts that webhooks may reach, as HOST or HOST:PORT, separated by commas. Unset: none.",
    )

    # Judge
    judge_command: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Command of the judge, called with `--device D`; unset: this Python's `evaluator`."
    )
    cpu_threads: str = Field(
        default="1",
        pattern=r"^([1-9][0-9]*|all)(,([1-9][0-9]*|all))*$",
        description="CPU threads that references, baselines and kernels are judged with, each on a core; or `all`."
        " Confirmed kernels are judged with further numbers, after commas, too: `1,all`.",
    )
    minimum_isolation: Literal["any", "caged", "whole"] = Field(
        default="any",
        description="Refuse to judge below this: `caged` needs namespaces, `whole` every protection. See `doctor`.",
    )
    built_files: str = Field(
        default="",
        description="Build cache shared by all judges of a machine; unset: each judge keeps its own.",
    )
    sanitizer: str = Field(
        default="", description="compute-sanitizer's program; unset: where it is installed; `off`: never run."
    )
    sanitizer_s: float = Field(
        default=60.0, gt=0, description="Total time of each tool of compute-sanitizer in one confirmation."
    )
    ncu: str = Field(
        default="", description="Nsight Compute's program; unset: where it is installed; `off`: no counters are read."
    )
    ncu_s: float = Field(default=60.0, gt=0, description="Total time of reading a GPU's counters once.")
    gpu_device: str = Field(default="cuda:0", description="The device of a `gpu` worker.")
    admit_deadline_s: float = Field(default=180.0, gt=0, description="Total time of one admission.")
    baseline_deadline_s: float = Field(default=600.0, gt=0, description="Total time of timing all Baselines once.")
    build_deadline_s: float = Field(default=180.0, gt=0, description="Total time of one build.")
    judge_deadline_s: float = Field(default=300.0, gt=0, description="Total time of judging one Candidate.")
    confirm_deadline_s: float = Field(default=600.0, gt=0, description="Total time of confirming one Candidate.")

    @field_validator("allowed_hosts", "webhook_internal_hosts", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("judge_command", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        return tuple(shlex.split(value)) if isinstance(value, str) else value

    @field_validator("api_key", mode="before")
    @classmethod
    def _set(cls, value: object) -> object:
        return value or None  # an empty variable is unset

    @field_validator("gpu_device")
    @classmethod
    def _gpu(cls, value: str) -> str:
        if not re.fullmatch(r"cuda:\d+", value):
            raise ValueError("name a GPU as cuda:N, such as cuda:0")
        return value

    @field_validator("models", mode="before")
    @classmethod
    def _endpoints(cls, value: object) -> tuple[ModelEndpoint, ...]:
        try:
            return read_endpoints(value)
        except SettingsError as error:
            raise ValueError(str(error)) from error

    def endpoint(self, name: str) -> ModelEndpoint | None:
        """Return the endpoint of that name, or None."""
        return next((endpoint for endpoint in self.models if endpoint.name == name), None)

    @property
    def proposer_names(self) -> tuple[str, ...]:
        """Return the names that `RunConfig.proposers` may use here, apart from `seed` and `replay:NAME`."""
        return (*ENUMERATORS, *(("model",) if self.models else ()), *(endpoint.name for endpoint in self.models))

    @property
    def default_proposers(self) -> tuple[str, ...]:
        """Return the synthesiser alone, or with every model where one is configured."""
        return ("synthesiser", "model") if self.models else ("synthesiser",)


def load_settings() -> Settings:
    """Read the settings from the environment. Raise SettingsError with one line per wrong variable."""
    try:
        return Settings()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise SettingsError("\n".join(_line("_".join(map(str, item["loc"])), item["msg"]) for item in found)) from error


def _line(field: str, message: str) -> str:
    """Return the variable's name, once, and what is wrong with it, without pydantic's own prefix."""
    name = f"{PREFIX}{field.upper()}: "
    return name + message.removeprefix("Value error, ").removeprefix(name)


@cache
def settings() -> Settings:
    """Return the settings of this process, read once. Raise SettingsError."""
    return load_settings()


def settings_table() -> str:
    """Return a Markdown table of every setting and of every field of a model endpoint."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for name, info in Settings.model_fields.items():
        lines.append(f"| `{PREFIX}{name.upper()}` | {_shown(info.default)} | {info.description} |")
    lines += ["", "Fields of one entry of `WARPWRIGHT_MODELS`:", "", "| field | default | meaning |", "|---|---|---|"]
    for name, info in ModelEndpoint.model_fields.items():
        default = "required" if info.is_required() else _shown(info.get_default(call_default_factory=True))
        lines.append(f"| `{name}` | {default} | {info.description} |")
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    if value is None or value in ((), {}, ""):
        return "unset"
    return f"`{','.join(value)}`" if isinstance(value, tuple) else f"`{value}`"
