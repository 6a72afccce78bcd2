"""TorchScript, as a plug-in: torch's own compiler, run when the module is imported and again at its first calls."""

from __future__ import annotations

from pathlib import Path

from evaluator.languages.allowed import AllowedNames
from evaluator.languages.base import LanguageAdapter
from evaluator.languages.niche import NicheRules, rules
from evaluator.languages.notes import Note, Topic
from evaluator.types import DeviceKind, Language


class TorchscriptAdapter(LanguageAdapter):
    """Candidates with functions under `torch.jit.script`."""

    language = Language.TORCHSCRIPT
    title = "TorchScript"
    guide = Path(__file__).with_name("guide.j2")
    notes = (Note(Topic.REDUCTION, "script the whole row function, so that the fuser sees the reduction."),)
    niches = NicheRules(
        compute=rules(("reduce", r"\.(?:sum|mean|amax)\(")),
        parallel=rules(("forked", r"torch\.jit\.fork")),
    )
    allowed = AllowedNames(settable=("torch.jit.strict",))
    compiles_on_import = True
    compiles_on_first_call = True

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return "torch.jit" in names

    def timed_on(self, kind: DeviceKind) -> bool:
        return True
