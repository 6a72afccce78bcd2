"""The table of languages is complete: every folder is in it, and every entry has its texts and an example."""

from __future__ import annotations

from pathlib import Path

import pytest

import evaluator.languages
from evaluator.languages import ADAPTERS, adapter, detect, usual_language
from evaluator.types import DeviceKind, Language

FOLDER = Path(evaluator.languages.__file__).parent
EXAMPLES = {
    Language.TORCH: "import torch\nclass ModelNew(torch.nn.Module): pass\n",
    Language.CPP: "from warpwright_native import load_cpp\n",
    Language.TRITON: "import triton\nimport triton.language as tl\n",
    Language.CUDA: "from warpwright_native import load_cuda\n",
    Language.HELION: "import helion\nimport triton\n",
    Language.CUTILE: "import cuda.tile as ct\n",
}


def test_every_folder_is_in_the_table_and_the_other_way_round() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == {language.value for language in ADAPTERS} == {language.value for language in Language}
    assert all(type(one).__module__ == f"evaluator.languages.{name}" for name, one in ADAPTERS.items())


@pytest.mark.parametrize("language", list(Language))
def test_an_entry_has_everything(language: Language) -> None:
    one = adapter(language)
    assert one.language is language
    assert one.title
    assert one.guide.read_text(encoding="utf-8").startswith("## Writing ")
    assert one.notes or one.guide == adapter(usual_language(DeviceKind.CPU)).guide
    assert one.niches.memory or one.niches.compute or one.niches.parallel
    assert any(one.timed_on(kind) for kind in DeviceKind)


def test_every_language_has_an_example_that_is_recognised() -> None:
    assert {language: detect(source) for language, source in EXAMPLES.items()} == {one: one for one in Language}


def test_what_does_not_parse_is_torch() -> None:
    assert detect("def (") is Language.TORCH
