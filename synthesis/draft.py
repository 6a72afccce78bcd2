"""What the synthesiser hands over: the source of a Candidate and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluator.types import Candidate, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A Candidate's source. `strategy` names the plan, `configuration` its Tunables, `notes` says it for a person."""

    source: str
    language: Language
    strategy: str
    notes: str = ""
    configuration: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The hash of the Candidate that this source makes."""
        return Candidate(source=self.source, language=self.language).hash
