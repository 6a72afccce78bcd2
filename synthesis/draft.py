"""The synthesiser's result: the source of a Candidate and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.types import Candidate, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A Candidate's source. `strategy` names the plan, `configuration` its Tunables, `notes` describe it for a person,
    `left` says which operations stay library calls and what share of the time these hold."""

    source: str
    language: Language
    strategy: str
    notes: str = ""
    left: str = ""
    configuration: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The hash of the Candidate with this source."""
        return Candidate(source=self.source, language=self.language).hash
