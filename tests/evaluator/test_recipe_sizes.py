"""Sizes of a reference, found without running it: arguments, constants of the module, and further Workloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluator.errors import ProblemError
from evaluator.problem import read_problem
from evaluator.recipe_sizes import constants_as_arguments, default_sizes, domain_in_words, parse_size, with_workloads
from evaluator.types import Domain, Problem, Workload

MODEL = """
class Model:
    def __init__(self, width=8, groups=3):
        self.groups = groups

    def forward(self, x, batch_size=0):
        return x
"""


def sizes(constants: str, inputs: str, *, init: str = "", more: str = "", model: str = MODEL) -> dict[str, int]:
    """Return the sizes of a module."""
    text = f"import math\n{constants}\n{model}\n{more}\ndef get_inputs():\n    return [{inputs}]\n"
    text += f"def get_init_inputs():\n    return [{init}]\n" if init else ""
    return dict(default_sizes(constants_as_arguments(text)))


@pytest.mark.parametrize(
    ("constants", "inputs", "found"),
    [
        ("batch_size = 16\ndim = 4 * 1024", "batch_size, dim", {"batch_size": 16, "dim": 4096}),
        ("N: int = 1 << 10", "N", {"N": 1024}),
        ("shape = (16, 2 ** 5)", "*shape", {"shape_0": 16, "shape_1": 32}),
        ("heads = 8\nhidden = heads * 64", "hidden", {"heads": 8}),
        ("dims = [4, 5]\ncount = math.prod(dims)", "count", {"dims_0": 4, "dims_1": 5}),
        ("rows = 4\nrows = 5", "rows", {}),
        ("rows = 0\nfraction = 0.5\nname = 'x'\nflag = True", "rows, fraction, name, flag", {}),
        ("rows = 4\ntable = make(rows)", "table", {}),
        ("rows = 4\nprint(rows)", "rows", {}),
        ("rows = 4\nunread = 5", "rows", {"rows": 4}),
        ("groups = 4\nwidth = 5", "groups, width", {"groups": 4, "width": 5}),
    ],
)
def test_constants_that_are_sizes(constants: str, inputs: str, found: dict[str, int]) -> None:
    assert sizes(constants, inputs) == found


def test_a_constant_that_the_model_reads_is_no_size() -> None:
    reads = MODEL.replace("return x", "return x * rows")
    assert sizes("rows = 4\ncols = 5", "rows, cols", model=reads) == {"cols": 5}
    derived = MODEL.replace("return x", "return x * area")
    assert sizes("rows = 4\ncols = 5\narea = 2 * rows", "rows, cols", model=derived) == {"cols": 5}
    assert sizes("rows = 4", "rows", model=MODEL.replace("width=8", "width=rows")) == {}


def test_helpers_of_the_recipes_count_as_recipes() -> None:
    helper = "def made():\n    return rows\n"
    assert sizes("rows = 4", "made()", more=helper) == {"rows": 4}
    shared = MODEL.replace("return x", "return made()")
    assert sizes("rows = 4", "made()", more=helper, model=shared) == {}


def test_a_main_block_does_not_count() -> None:
    main = 'if __name__ == "__main__":\n    rows = 7\n    print(rows)\n'
    assert sizes("rows = 4", "rows", more=main) == {"rows": 4}


def test_the_recipes_compute_with_the_given_sizes() -> None:
    text = "import math\nheads = 8\nshape = (heads, 3)\nhidden = heads * 64\n" + MODEL
    text += "def helper():\n    return hidden\ndef get_inputs(rows=2):\n    return [rows, helper(), *shape]\n"
    text += "def get_init_inputs():\n    return [hidden]\n"
    made = constants_as_arguments(text)
    assert constants_as_arguments(made) == made
    module: dict[str, Any] = {"__name__": "problem"}
    exec(compile(made, "problem.py", "exec"), module)
    assert module["get_inputs"]() == [2, 512, 8, 3]
    assert module["get_inputs"](rows=5, heads=4) == [5, 256, 4, 3]
    assert module["get_init_inputs"](heads=2) == [128]
    assert (module["hidden"], module["heads"]) == (512, 8)


@pytest.mark.parametrize(
    "recipe",
    ["def get_inputs(*shape):", "def get_inputs(**sizes):", "@cached\ndef get_inputs():", "def get_inputs(rows):"],
)
def test_recipes_of_other_forms_stay_as_they_are(recipe: str) -> None:
    text = f"rows = 4\n{MODEL}\n{recipe}\n    return [rows]\n"
    assert constants_as_arguments(text) == text


def test_defaults_that_differ_are_no_sizes() -> None:
    text = f"{MODEL}\ndef get_inputs(a=4, b=5):\n    return [a]\ndef get_init_inputs(b=6):\n    return [b]\n"
    assert default_sizes(text) == {"a": 4}
    assert default_sizes("def (") == {}


# ---------------------------------------------------------------- further Workloads


def problem(extra: str = "", domain: Domain = Domain.DECLARED) -> Problem:
    text = f"rows = 4\ncols = 5\n{MODEL}\ndef get_inputs():\n    return [rows, cols]\n{extra}"
    return replace(read_problem(text, "p"), domain=domain)


def test_sizes_of_a_further_workload() -> None:
    assert parse_size("rows=64") == {"rows": 64}
    read = parse_size(" rows = 64, scale=0.5,dtype=bfloat16, causal=true ")
    assert read == {"rows": 64, "scale": 0.5, "dtype": "bfloat16", "causal": True}


@pytest.mark.parametrize("text", ["", "rows", "rows=", "=4", "a b=4", "rows=4,rows=5", "rows=4,,cols=5"])
def test_sizes_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=VALUE"):
        parse_size(text)


@pytest.mark.parametrize("text", ["rows=1e999", "rows=-1e999", "rows=" + "9" * 5000, "rows=1" + "0" * 30])
def test_numbers_that_nothing_can_store_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="rows must be a finite number"):
        parse_size(text)
    with pytest.raises(ProblemError, match="rows must be a finite number"):
        read_problem(f"{MODEL}\ndef get_inputs(rows=4):\n    return [rows]\nWORKLOADS = [{{'rows': 1e999}}]\n", "p")


@pytest.mark.parametrize("value", [0, -5])
def test_whole_sizes_of_a_further_workload_are_1_or_more(value: int) -> None:
    with pytest.raises(ValueError, match="rows must be 1 or more"):
        with_workloads(problem(), [{"rows": value}])
    assert with_workloads(problem(), [{"rows": 1.5}]).workloads[-1].sizes == {"rows": 1.5}


def test_workloads_are_added() -> None:
    more = with_workloads(problem(), [{"rows": 64}, {"rows": 64}, {"rows": 7, "cols": 9}])
    assert more.workloads == (
        Workload(name="default"),
        Workload(name="rows=64", sizes={"rows": 64}),
        Workload(name="rows=7, cols=9", sizes={"rows": 7, "cols": 9}),
    )
    listed = with_workloads(problem("WORKLOADS = [{'rows': 3, 'cols': 2}]\n"), [{"rows": 64}])
    assert listed.workloads[1].sizes == {"rows": 64, "cols": 2}


def test_an_unknown_size_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'row' is no size of this file: its sizes are rows, cols"):
        with_workloads(problem(), [{"row": 3}])
    nameless = read_problem(f"{MODEL}\ndef get_inputs():\n    return [3]\n", "p")
    with pytest.raises(ValueError, match=r"it names none\. Sizes are arguments of get_inputs"):
        with_workloads(nameless, [{"rows": 3}])


def test_the_domain_in_words() -> None:
    assert domain_in_words(problem()) == "exactly these shapes, dense and aligned"
    varied = with_workloads(problem(), [{"rows": 64}])
    assert domain_in_words(varied) == "these shapes and other values of rows, dense and aligned"
    assert domain_in_words(problem(domain=Domain.GENERAL)).startswith("every size that the reference accepts")


PLAIN_RECIPE = "def reference(x):\n    return x\ndef get_inputs(rows=4):\n    return [rows]\n"


def test_names_of_numbers_that_are_not_finite_are_words() -> None:
    assert parse_size("mode=nan, top=inf") == {"mode": "nan", "top": "inf"}


def test_arguments_by_position_alone_are_no_sizes() -> None:
    assert default_sizes(PLAIN_RECIPE.replace("rows=4", "rows=4, /, *, length=3")) == {"length": 3}
    assert default_sizes(PLAIN_RECIPE.replace("rows=4", "rows=4, /, length=3")) == {"length": 3}
