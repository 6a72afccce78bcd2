"""Several kernels in one file: each call reaches its kernel, names do not clash, and parameters exist once."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from torch import nn

from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import screen
from evaluator.types import Candidate, DeviceKind, LibraryPolicy, Problem, WorkloadFacts
from synthesis import propose
from synthesis.dispatch.source import REFERENCE, write_dispatch
from synthesis.errors import Unsupported
from synthesis.tuning import configure, read_tunables
from tests.synthesis.checking import graphs, sizes_of

PROBLEM = '''"""Scale and shift."""
import torch
import torch.nn as nn

WORKLOADS = [{"name": "long", "rows": 2, "n": 512}, {"name": "wide", "rows": 512, "n": 4}]
SHIFT = 1.0


def helper(x):
    return x + SHIFT


class Model(nn.Module):
    """The reference."""

    def __init__(self, n: int):
        """Make it."""
        super(Model, self).__init__()
        self.scale = nn.Parameter(torch.full((n,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return helper(x * self.scale) * 1.0


def get_inputs(rows=2, n=512):
    return [torch.randn(rows, n)]


def get_init_inputs(n=512):
    return [n]
'''


def kernel(mark: float, *, constructor: str = "", more: str = "", extra: str = "") -> str:
    """Return a Candidate that adds `mark`, so that a test can tell which kernel answered."""
    return f'''"""A kernel."""
import torch
from torch import nn

TUNABLES = {{"BLOCK": [1, 2]}}
CONFIG = {{"BLOCK": 1}}
MARK = {mark}


def answer(x):
    return x + MARK * CONFIG["BLOCK"]
{extra}

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.full((n,), 2.0)){constructor}
{more}
    def forward(self, x):
        return answer(x * self.scale)
'''


FACTS = (
    WorkloadFacts(workload="long", inputs=("float32 [2, 512]",), outputs=("float32 [2, 512]",), bytes_moved=1),
    WorkloadFacts(workload="wide", inputs=("float32 [512, 4]",), outputs=("float32 [512, 4]",), bytes_moved=1),
)
CHOICES = {"long": 0, "wide": 1}


def problem(source: str = PROBLEM) -> Problem:
    return read_problem(source, "scale_shift")


def loaded(source: str) -> types.ModuleType:
    made = types.ModuleType("candidate")
    exec(compile(source, "candidate", "exec"), made.__dict__)
    return made


def written(
    *kernels: str,
    choices: Mapping[str, int] = CHOICES,
    facts: Sequence[WorkloadFacts] = FACTS,
    of: Problem | None = None,
) -> str:
    return write_dispatch(of or problem(), facts, kernels, choices)


def test_each_workload_is_answered_by_its_kernel() -> None:
    source = written(kernel(10.0), kernel(20.0))
    model = loaded(source).ModelNew(4)
    x = torch.zeros(512, 4)
    assert torch.equal(model(x), x + 20.0)
    model = loaded(source).ModelNew(512)
    assert torch.equal(model(torch.zeros(2, 512)), torch.full((2, 512), 10.0))


@pytest.mark.parametrize(("rows", "n", "mark"), [(3, 511, 10.0), (1, 1000, 10.0), (511, 5, 20.0), (600, 1, 20.0)])
def test_sizes_nearby_go_to_the_nearest(rows: int, n: int, mark: float) -> None:
    model = loaded(written(kernel(10.0), kernel(20.0))).ModelNew(n)
    assert torch.equal(model(torch.zeros(rows, n)), torch.full((rows, n), mark))


def test_other_dtypes_and_ranks_go_to_the_reference() -> None:
    model = loaded(written(kernel(10.0), kernel(20.0))).ModelNew(4)
    assert torch.equal(model(torch.zeros(2, 2, 4)), torch.ones(2, 2, 4))
    assert torch.equal(model(torch.zeros(512, 4).double()), torch.ones(512, 4).double())


def test_the_reference_may_be_chosen() -> None:
    model = loaded(written(kernel(10.0), choices={"long": 0, "wide": REFERENCE})).ModelNew(4)
    assert torch.equal(model(torch.zeros(512, 4)), torch.ones(512, 4))


def test_parameters_are_those_of_the_reference_and_there_once() -> None:
    names: dict[str, object] = {}
    exec(compile(PROBLEM, "reference", "exec"), names)
    reference = names["Model"](4)  # type: ignore[operator]
    model = loaded(written(kernel(10.0), kernel(20.0))).ModelNew(4)
    assert isinstance(model, nn.Module)
    assert list(model.state_dict()) == list(reference.state_dict())
    model.load_state_dict({"scale": torch.arange(4.0)})
    assert torch.equal(model(torch.ones(512, 4)), (torch.arange(4.0) + 20.0).expand(512, 4))


def test_what_constructors_and_methods_add_is_kept_apart() -> None:
    def made(mark: float) -> str:
        return kernel(
            mark,
            constructor=f"\n        self.kept = {mark}\n        self._more = [self.kept]",
            more=f"\n    def helper(self, x):\n        return x + {mark} + self.kept + self._more[0]\n",
        ).replace("return answer(x * self.scale)", "return self.helper(x * self.scale)")

    model = loaded(written(made(10.0), made(100.0))).ModelNew(512)
    assert torch.equal(model(torch.zeros(2, 512)), torch.full((2, 512), 30.0))
    model = loaded(written(made(10.0), made(100.0))).ModelNew(4)
    assert torch.equal(model(torch.zeros(512, 4)), torch.full((512, 4), 300.0))


def test_inputs_that_are_no_plain_tensors_are_told_apart_too() -> None:
    nested = PROBLEM.replace("def forward(self, x: torch.Tensor)", "def forward(self, pair, k=1)")
    nested = nested.replace("helper(x * self.scale)", "helper(pair[0] * self.scale)")
    one = kernel(10.0).replace("forward(self, x)", "forward(self, pair, k=1)").replace("answer(x *", "answer(pair[0] *")
    facts = [replace(fact, inputs=(fact.inputs[0], "int64 []"), outputs=fact.outputs) for fact in FACTS]
    source = written(one, one.replace("MARK = 10.0", "MARK = 20.0"), facts=facts, of=problem(nested))
    model = loaded(source).ModelNew(4)
    assert torch.equal(model([torch.zeros(512, 4), torch.tensor(1)]), torch.full((512, 4), 20.0))
    assert torch.equal(model([torch.zeros(512, 4)], 2), torch.ones(512, 4))


def test_no_tunables_are_left_and_the_text_is_a_candidate() -> None:
    source = written(kernel(10.0), kernel(20.0))
    assert "TUNABLES" not in source
    screen(problem(), Candidate(source=source, language=detect(source)))


def test_a_problem_that_forbids_libraries_gets_no_reference() -> None:
    forbidding = replace(problem(), allow_library=LibraryPolicy.FORBIDDEN)
    source = written(kernel(10.0), kernel(20.0), of=forbidding)
    assert "_reference(" not in source
    model = loaded(source).ModelNew(4)
    assert torch.equal(model(torch.zeros(2, 2, 4)), torch.full((2, 2, 4), 10.0))
    with pytest.raises(Unsupported, match="forbids library calls"):
        written(kernel(10.0), choices={"long": 0, "wide": REFERENCE}, of=forbidding)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("torch.full((n,), 2.0)", "torch.full((n,), 3.0)"), "__init__ of its own"),
        (("class ModelNew(nn.Module)", "class ModelNew(nn.Identity)"), "no plain class"),
        (("class ModelNew(nn.Module)", "class Other(nn.Module)"), "no plain class"),
        (("    def forward", "    def __call__(self, x):\n        return x\n\n    def forward"), "__call__ of its own"),
        (("    def forward", "    def backward"), "no forward"),
        (("from torch import nn", "import numpy as torch\nfrom torch import nn"), "two things as torch"),
        (("MARK = 10.0", "import numpy as nn2\nfrom torch import nn as math\nMARK = 10.0"), "imports torch.nn as math"),
    ],
)
def test_kernels_that_cannot_be_put_together_are_refused(change: tuple[str, str], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        written(kernel(10.0).replace(*change), kernel(20.0))


@pytest.mark.parametrize("choices", [{"long": 0, "wide": 0}, {"long": 0, "wide": 2}, {"long": -2, "wide": 1}])
def test_choices_name_each_kernel_and_nothing_else(choices: dict[str, int]) -> None:
    with pytest.raises(Unsupported, match="every kernel is chosen"):
        written(kernel(10.0), kernel(20.0), choices=choices)


def test_equal_inputs_cannot_go_two_ways() -> None:
    twice = (FACTS[0], replace(FACTS[0], workload="wide"))
    with pytest.raises(Unsupported, match="equal inputs"):
        written(kernel(10.0), kernel(20.0), facts=twice)


def test_inputs_must_be_known() -> None:
    with pytest.raises(Unsupported, match="not described"):
        written(kernel(10.0), kernel(20.0), facts=[replace(fact, inputs=("4",)) for fact in FACTS])
    with pytest.raises(Unsupported, match="nothing is known"):
        written(kernel(10.0), kernel(20.0), facts=())


def synthesised(kind: DeviceKind) -> list[str]:
    workloads = sizes_of(PROBLEM, kind.value)
    draft = propose(graphs(PROBLEM, workloads), kind, number=0)
    assert draft is not None
    tunables, config = read_tunables(draft.source)
    name = next(name for name, values in tunables.items() if len(values) > 1)
    other = next(value for value in tunables[name] if value != config[name])
    return [draft.source, configure(draft.source, {**config, name: other})]


def test_two_configurations_of_one_triton_kernel_make_a_file_as_plain_as_they_are() -> None:
    sources = synthesised(DeviceKind.CUDA)
    assert all(map(is_restricted, sources))
    source = written(*sources)
    assert detect(source) == detect(sources[0])
    assert is_restricted(source)


@pytest.mark.compiles
def test_two_cpp_libraries_in_one_file() -> None:
    source = written(*synthesised(DeviceKind.CPU))
    model = loaded(source).ModelNew(4)
    for rows in (512, 2):
        x = torch.randn(rows, 4)
        assert torch.allclose(model(x), (x * 2.0 + 1.0) * 1.0)
    assert source.count("load_cpp(_k") == 2
