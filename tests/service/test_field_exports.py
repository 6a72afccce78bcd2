"""Kernels in the forms of KernelBench, GPU MODE, FlashInfer-Trace and SOL-ExecBench, as these projects load them."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.problem import read_problem
from evaluator.types import Candidate, Language, WorkloadFacts
from service.errors import Conflict
from service.exports import KERNELS, Export, Unsupported
from service.exports.parts.standalone import calling
from service.routers.downloads import send
from tests.service.test_exports import RIGHT, export
from tests.support import scripts

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = """import torch
import torch.nn as nn

WORKLOADS = [{"name": "small", "rows": 8}, {"name": "large", "rows": 33}]


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.first = nn.Linear(columns, columns)
        self.shift = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return self.first(x) + self.shift


def get_inputs(rows=8):
    return [torch.randn(rows, 16)]


def get_init_inputs():
    return [16]
"""
# It draws its weights in another order than the reference.
KERNEL = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.shift = nn.Parameter(torch.randn(columns))
        self.first = nn.Linear(columns, columns)

    def forward(self, x):
        return torch.addmm(self.first.bias + self.shift, x, self.first.weight.t())
"""
ERRORS = {"worst_relative_error": 3e-7, "worst_absolute_error": 2e-6, "worst_error_share": 0.2}


def facts(rows: int, name: str) -> WorkloadFacts:
    return WorkloadFacts(
        workload=name, inputs=(f"float32 [{rows}, 16]",), outputs=(f"float32 [{rows}, 16]",), bytes_moved=1,
        constructor={"list": [16]}, arguments={"list": [{"tensor": 0}]},
        weights=("shift float32 [16]", "first.weight float32 [16, 16]", "first.bias float32 [16]"),
    )  # fmt: skip


def field_export(problem: str = PROBLEM, kernel: str = KERNEL, name: str = "linear shift") -> Export:
    """A confirmed kernel in PyTorch, which every project can run."""
    made = export(RIGHT)
    assert made.evaluation is not None
    evaluation = dataclasses.replace(made.evaluation, evidence={"correctness": ERRORS})
    return dataclasses.replace(
        made, problem=read_problem(problem, name), candidate=Candidate(source=kernel, language=Language.TORCH),
        evaluation=evaluation, facts=(facts(8, "small"), facts(33, "large")),
    )  # fmt: skip


def unpacked(form: str, made: Export, folder: Path) -> Path:
    """Build a format into a folder and return the folder that its archive holds."""
    built = KERNELS[form].build(made)
    assert isinstance(built, bytes)
    with zipfile.ZipFile(io.BytesIO(built)) as packed:
        packed.extractall(folder)
    (inner,) = folder.iterdir()
    return inner


@pytest.mark.compiles
def test_kernelbench_gets_a_file_that_draws_the_weights_of_the_reference(tmp_path: Path) -> None:
    """KernelBench compares two modules that were constructed under one seed."""
    origin = '# warpwright origin: {"format":"kernelbench","level":2,"id":7,"file":"7_X.py","commit":null}\n'
    folder = unpacked("kernelbench", field_export(PROBLEM + origin), tmp_path)
    (path,) = folder.iterdir()
    assert path.relative_to(tmp_path).as_posix() == "warpwright/level_2_problem_7_sample_0_kernel.py"
    (folder / "their.py").write_text(PROBLEM, encoding="utf-8")
    right, shown = scripts.run(
        f"""
import torch, their
source = {{}}
exec(open({path.name!r}).read(), source)  # as KernelBench does for CUDA
torch.manual_seed(42); reference = their.Model(16); after = torch.rand(1)
torch.manual_seed(42); kernel = source["ModelNew"](16); assert torch.equal(after, torch.rand(1))
x = torch.randn(8, 16)
torch.testing.assert_close(kernel(x), reference(x))
""",
        folder,
    )
    assert right, shown


LOADED = """
import sys
from pathlib import Path
from bench.rate.kernelbench import _ready
_ready()
from kernelbench.eval import load_custom_model, load_original_model_and_inputs
from kernelbench.kernel_static_checker import check_code_bypass
import torch
problem, kernel = (Path(one).read_text() for one in sys.argv[1:])
assert not check_code_bypass(kernel)[0], check_code_bypass(kernel)
reference, init, inputs = load_original_model_and_inputs(problem, {})
torch.manual_seed(42); one = reference(*init())
torch.manual_seed(42); other = load_custom_model(kernel, {})(*init())
(x,) = inputs()
torch.testing.assert_close(other(x), one(x))
print("loaded")
"""


def test_kernelbenchs_own_loader_takes_the_file(tmp_path: Path) -> None:
    checkout = os.environ.get("WARPWRIGHT_KERNELBENCH")
    if not checkout:
        pytest.skip("WARPWRIGHT_KERNELBENCH names no checkout")
    (path,) = unpacked("kernelbench", field_export(), tmp_path).iterdir()
    (tmp_path / "problem.py").write_text(PROBLEM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path / "problem.py"), str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(checkout) / "src")])},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "loaded" in done.stdout, done.stderr[-2000:]


@pytest.mark.compiles
def test_gpu_mode_gets_a_submission(tmp_path: Path) -> None:
    problem = PROBLEM.replace("        self.first = nn.Linear(columns, columns)\n", "").replace("self.first(x)", "x")
    kernel = KERNEL.replace("        self.first = nn.Linear(columns, columns)\n", "").replace(
        "torch.addmm(self.first.bias + self.shift, x, self.first.weight.t())", "self.shift + x"
    )
    origin = '# warpwright origin: {"format":"gpumode","leaderboard":"shift_v1","gpus":["L4"],"packed":true}\n'
    made = field_export(problem + origin, kernel)
    made = dataclasses.replace(
        made, facts=tuple(dataclasses.replace(fact, weights=fact.weights[:1]) for fact in made.facts)
    )
    text = KERNELS["gpumode"].build(made)
    assert isinstance(text, str)
    assert text.splitlines()[:2] == ["#!POPCORN leaderboard shift_v1", "#!POPCORN gpu L4"]
    (tmp_path / "submission.py").write_text(text, encoding="utf-8")
    (tmp_path / "task.py").write_text("from typing import TypeVar\ninput_t = output_t = TypeVar('input_t')\n")
    right, shown = scripts.run(
        """
import torch
from submission import custom_kernel
x, shift = torch.randn(33, 16), torch.randn(16)
torch.testing.assert_close(custom_kernel((x, {"shift": shift})), x + shift)
""",
        tmp_path,
    )
    assert right, shown


def check_schema(solution: dict[str, Any], definition: dict[str, Any], *, sol: bool) -> None:
    """The rules that both projects state for a definition and its solution."""
    names = {one["path"] for one in solution["sources"]}
    assert solution["spec"]["entry_point"].split("::")[0] in names
    assert solution["definition"] == definition["name"]
    assert solution["spec"]["destination_passing_style"] is False
    for spec in (*definition["inputs"].values(), *definition["outputs"].values()):
        assert set(spec["shape"]) <= set(definition["axes"])
    assert not set(definition["inputs"]) & set(definition["outputs"])
    if sol:
        assert solution["spec"]["languages"] == ["pytorch"]
        assert solution["spec"]["target_hardware"] == ["LOCAL"]
    else:
        assert solution["spec"]["language"] == "python"


RUN_BOTH = """
import json, torch, main
definition = json.load(open({definition!r}))
reference = {{}}
exec(definition["reference"], reference)
axes = {{"rows": 33}} | {{name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"}}
given = [torch.randn([axes[axis] for axis in spec["shape"]]) for spec in definition["inputs"].values()]
torch.testing.assert_close(main.run(*given), reference["run"](*given))
"""


@pytest.mark.compiles
def test_flashinfer_gets_a_data_set_of_its_own(tmp_path: Path) -> None:
    """The weights are inputs of the definition; its reference and the solution agree on them."""
    folder = unpacked("flashinfer", field_export(), tmp_path)
    (path,) = folder.glob("solutions/warpwright/warpwright/linear_shift_cpu/*.json")
    solution, definition = json.loads(path.read_text()), folder / "definitions/warpwright/linear_shift_cpu.json"
    told = json.loads(definition.read_text())
    check_schema(solution, told, sol=False)
    assert told["axes"] == {"rows": {"type": "var"}, "d16": {"type": "const", "value": 16}}
    assert list(told["inputs"]) == ["x", "shift", "first_weight", "first_bias"]
    (trace,) = map(json.loads, (folder / "traces/warpwright/linear_shift_cpu.jsonl").read_text().splitlines())
    assert trace["workload"]["axes"] == {"rows": 8}
    assert trace["evaluation"]["correctness"]["max_absolute_error"] == 2e-6
    assert trace["evaluation"]["performance"]["latency_ms"] == pytest.approx(0.01)
    (folder / "main.py").write_text(solution["sources"][0]["content"], encoding="utf-8")
    right, shown = scripts.run(RUN_BOTH.format(definition=str(definition)), folder)
    assert right, shown


def test_sol_gets_a_problem_folder(tmp_path: Path) -> None:
    folder = unpacked("sol", field_export(), tmp_path)
    solution, definition = (json.loads((folder / f"{name}.json").read_text()) for name in ("solution", "definition"))
    check_schema(solution, definition, sol=True)
    assert [json.loads(line)["axes"] for line in (folder / "workload.jsonl").read_text().splitlines()] == [
        {"rows": 8},
        {"rows": 33},
    ]


@pytest.mark.compiles
def test_an_imported_definition_gets_the_solution_alone(tmp_path: Path) -> None:
    told = {
        "format": "flashinfer", "definition": "scale_h16", "op_type": "..", "inputs": ["x", "s"], "scalars": ["s"],
        "workloads": {"small": {"uuid": "u", "axes": {"rows": 8}, "inputs": {"x": {"type": "random"}}}},
    }  # fmt: skip
    kernel = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, s):\n        super().__init__()\n"
    )
    kernel += "        self.s = s\n\n    def forward(self, x):\n        return x * self.s\n"
    problem = kernel.replace("ModelNew", "Model") + "\n\ndef get_inputs():\n    return [torch.randn(8, 16)]\n\n\n"
    problem += f"def get_init_inputs():\n    return [2.0]\n\n\n# warpwright origin: {json.dumps(told)}\n"
    made = field_export(problem, kernel)
    other = dataclasses.replace(facts(8, "other"), constructor={"list": [3.0]})  # the call says which
    folder = unpacked("flashinfer", dataclasses.replace(made, facts=(*made.facts, other)), tmp_path)
    files = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*.json*"))
    assert [name.split("/")[0] for name in files] == ["solutions", "traces"]
    assert files[1] == "traces/other/scale_h16.jsonl", "no folder is called .."
    solution = json.loads((folder / files[0]).read_text())
    (folder / "main.py").write_text(solution["sources"][0]["content"], encoding="utf-8")
    right, shown = scripts.run(
        "import torch, main\nx = torch.randn(8, 16)\nassert torch.equal(main.run(x, 3.0), x * 3)\n"
        "assert torch.equal(main.run(x, 2.0), x * 2)\n",
        folder,
    )
    assert right, shown


@pytest.mark.parametrize("form", ["gpumode", "flashinfer", "sol"])
def test_equal_shapes_with_other_constructors_are_refused(form: str) -> None:
    other = dataclasses.replace(facts(8, "other"), constructor={"list": [17]})
    made = dataclasses.replace(field_export(), facts=(facts(8, "small"), other))
    with pytest.raises(Unsupported, match=r"'other' has the shapes of another one"):
        KERNELS[form].build(made)


def test_unknown_shapes_get_a_module_only_where_all_constructors_agree() -> None:
    def model(*rows: WorkloadFacts) -> Any:
        names: dict[str, Any] = {}
        exec(
            "import torch\nModelNew = torch.nn.Linear\n" + calling(dataclasses.replace(field_export(), facts=rows)),
            names,
        )
        return names["_ww_model"]

    def fact(rows: int, width: int) -> WorkloadFacts:
        return dataclasses.replace(facts(rows, str(rows)), constructor={"list": [16, width]})

    assert model(fact(8, 4), fact(9, 4))([torch.ones(5, 16)]).out_features == 4
    several = model(fact(8, 4), fact(9, 5))
    assert [several([torch.ones(rows, 16)]).out_features for rows in (8, 9)] == [4, 5]
    with pytest.raises(ValueError, match=r"no workload has the shapes \[\[5, 16\]\]"):
        several([torch.ones(5, 16)])


@pytest.mark.compiles
def test_flashinfer_bench_loads_builds_and_applies_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flashinfer_bench", reason="pip install flashinfer-bench")
    folder = unpacked("flashinfer", field_export(), tmp_path)
    monkeypatch.setenv("FIB_CACHE_PATH", str(tmp_path / "cache"))
    (folder / "try.py").write_text(APPLIED, encoding="utf-8")
    done = scripts.run_file(folder / "try.py")
    assert "applied" in done.stdout, done.stderr


APPLIED = """import torch, warnings
warnings.simplefilter("ignore")
from flashinfer_bench import ApplyConfig, ApplyConfigRegistry, apply, enable_apply
from flashinfer_bench.bench.utils import gen_inputs
from flashinfer_bench.data import TraceSet
data = TraceSet.from_path(".")
(name,) = data.definitions
given = gen_inputs(data.definitions[name], data.traces[name][0].workload, "cpu")
reference = {}
exec(data.definitions[name].reference, reference)
def refuse(*arguments): raise SystemExit("the fallback answered")
with enable_apply(".", ApplyConfigRegistry(default=ApplyConfig(max_rtol=1e-3))):
    made = apply(name, args=tuple(given), fallback=refuse)
torch.testing.assert_close(made, reference["run"](*given))
print("applied")
"""


def test_the_models_of_sol_execbench_accept_it(tmp_path: Path) -> None:
    pytest.importorskip("sol_execbench", reason="put the src folder of NVIDIA/SOL-ExecBench on PYTHONPATH")
    from sol_execbench.core.data.definition import Definition
    from sol_execbench.core.data.solution import Solution
    from sol_execbench.core.data.trace import Trace
    from sol_execbench.core.data.workload import Workload

    folder = unpacked("sol", field_export(), tmp_path)
    definition = Definition(**json.loads((folder / "definition.json").read_text()))
    assert Solution(**json.loads((folder / "solution.json").read_text())).definition == definition.name
    for line in (folder / "workload.jsonl").read_text().splitlines():
        Workload(**json.loads(line))
    for line in (folder / "traces.jsonl").read_text().splitlines():
        assert Trace(**json.loads(line)).is_successful()


@pytest.mark.parametrize(
    ("form", "made", "words"),
    [
        ("gpumode", export(RIGHT), "C.. for a CPU: optimise the problem with --device cuda"),
        ("sol", field_export(kernel=KERNEL + "\n\ndef run():\n    return 1\n"), "defines run itself"),
        ("flashinfer", export(RIGHT), "optimise it again"),
        (
            "flashinfer",
            dataclasses.replace(
                field_export(), facts=(dataclasses.replace(facts(8, "small"), inputs=("int64 [8, 16]",)),)
            ),
            "whole numbers",
        ),
        (
            "flashinfer",
            dataclasses.replace(field_export(), facts=(dataclasses.replace(facts(8, "a"), inputs=("uint8 [8, 16]",)),)),
            "input x is uint8",
        ),
    ],
)
def test_a_form_that_cannot_carry_a_kernel_says_why(form: str, made: Export, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        KERNELS[form].build(made)
    with pytest.raises(Conflict, match=words):
        send(made, form)
