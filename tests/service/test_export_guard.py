"""The guard of an exported file, in a process of its own: the kernel where it was verified, the reference elsewhere."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Domain, Language, WorkloadFacts
from service.exports.parts.domain import domain
from service.exports.python_file import build
from tests.service.test_exports import export
from tests.support import scripts

pytestmark = pytest.mark.compiles

PROBLEM = """import torch
import torch.nn as nn

WORKLOADS = [{"name": "a", "rows": 8, "columns": 64}, {"name": "b", "rows": 33, "columns": 64}]


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(columns))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, y):
        self.seen = self.seen + 1
        return x * self.scale + y


def get_inputs(rows=8, columns=64):
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs(columns=64):
    return [columns]
"""
# It says when it runs; the old form of super() must find its own class.
KERNEL = """import torch
import torch.nn as nn

ran = []


class ModelNew(nn.Module):
    def __init__(self, columns):
        super(ModelNew, self).__init__()
        self.scale = nn.Parameter(torch.ones(columns))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, y):
        ran.append(1)
        self.seen += 1
        return torch.addcmul(y, x, self.scale)
"""
FACTS = tuple(
    WorkloadFacts(
        workload=name,
        inputs=(f"float32 [{rows}, 64]",) * 2,
        outputs=(),
        bytes_moved=0,
        constructor={"list": [64]},
        arguments={"list": [{"tensor": 0}, {"tensor": 1}]},
    )
    for name, rows in (("a", 8), ("b", 33))
)
PRELUDE = """
import copy, io, pickle, warnings, torch
from kernel import *
import kernel
torch.manual_seed(0)
torch.set_num_threads(1)
model = ModelNew(64)
model.load_state_dict({"scale": torch.randn(64), "seen": torch.zeros(())})
x, y = torch.randn(8, 64), torch.randn(8, 64)

def right(x, y, model=model):
    return torch.testing.assert_close(model(x, y), x * model.scale + y)

def uses_kernel(x, y, model=model):
    ran.clear()
    right(x, y, model)
    assert ran, "the reference ran"

def falls_back(x, y, model=model):
    ran.clear()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        right(x, y, model)
    assert not ran, "the kernel ran"

"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("export")
    candidate = Candidate(source=KERNEL, language=Language.TORCH)
    wanted = replace(export(KERNEL), problem=read_problem(PROBLEM, "p"), candidate=candidate, facts=FACTS)
    (made / "kernel.py").write_text(build(wanted), encoding="utf-8")
    return made


def script(folder: Path, text: str) -> None:
    good, said = scripts.run(PRELUDE + textwrap.dedent(text), folder)
    assert good, said


def test_the_kernel_runs_on_what_it_was_verified_on(folder: Path) -> None:
    script(folder, """
        with torch.no_grad():
            for rows in (8, 33, 1, 7, 100):
                uses_kernel(torch.randn(rows, 64), torch.randn(rows, 64))
            uses_kernel(x, y)
            ran.clear(); model(x=x, y=y); assert ran
            uses_kernel(x, y, copy.deepcopy(model))
            uses_kernel(x, y, pickle.loads(pickle.dumps(model)))
            uses_kernel(x.clone().requires_grad_(), y)
        uses_kernel(x, y, model.requires_grad_(False))
    """)  # fmt: skip


def test_all_else_is_the_references(folder: Path) -> None:
    script(folder, """
        def part(t): return torch.empty(8, 65)[:, 1:].copy_(t)
        unaligned = torch.empty(8 * 64 + 4)[4:].view(8, 64).copy_(x)
        with torch.no_grad():
            falls_back(x.double(), y.double())
            falls_back(torch.randn(64, 8).t(), y)
            falls_back(part(x), y)
            falls_back(unaligned, y)
            falls_back(x[:1], y)  # broadcasting, which the reference takes
            falls_back(x[None], y[None])
            falls_back(x[:0], y[:0])
            falls_back(x, y, copy.deepcopy(model).half())
            falls_back(x, y, copy.deepcopy(model).double())
            strided = copy.deepcopy(model)
            strided.load_state_dict({"scale": torch.randn(128)[::2], "seen": torch.zeros(())}, assign=True)
            falls_back(x, y, strided)
            moved = copy.deepcopy(model)
            uses_kernel(x, y, moved)
            moved.scale.data = moved.scale.data.half()
            falls_back(x, y, moved)
            moved.float()
            uses_kernel(x, y, moved)
            wide = torch.randn(128)
            moved.scale.data = wide[:64]
            uses_kernel(x, y, moved)
            moved.scale.data = wide[::2]  # at the same address
            falls_back(x, y, moved)
            with torch.autocast("cpu", torch.bfloat16):
                falls_back(x, y)
            uses_kernel(x, y)
    """)  # fmt: skip


def test_gradients_are_the_references_and_reach_the_parameters(folder: Path) -> None:
    script(folder, """
        falls_back(x, y)  # the parameter asks for a gradient
        with warnings.catch_warnings(record=True):
            model(x.requires_grad_(), y).sum().backward()
        torch.testing.assert_close(model.scale.grad, x.detach().sum(0))
        falls_back(x, y, model.requires_grad_(False))  # and now only the input does
    """)  # fmt: skip


def test_both_share_one_state(folder: Path) -> None:
    script(folder, """
        assert list(model.state_dict()) == ["scale", "seen"]
        with torch.no_grad():
            uses_kernel(x, y)
            falls_back(x[:1], y)
            assert model.seen == 2
            model.load_state_dict({"scale": torch.full((64,), 3.0), "seen": torch.zeros(())}, assign=True)
            falls_back(x[:1], y)
            uses_kernel(x, y)
            assert model.seen == 2
            pickle.dumps(model); torch.save(model.state_dict(), io.BytesIO())
            assert len(list(model.modules())) == 1
    """)  # fmt: skip


def test_the_reference_raises_its_own_errors(folder: Path) -> None:
    script(folder, """
        small = ModelNew(32)
        try:
            with torch.no_grad():
                small(x, y)
        except RuntimeError as error:
            assert "must match" in str(error), error
        else:
            raise AssertionError("nothing was raised")
        assert not ran
        try:
            model(x)
        except TypeError:
            pass
        else:
            raise AssertionError("nothing was raised")
    """)  # fmt: skip


def test_it_is_said_once_and_why(folder: Path) -> None:
    script(folder, """
        with torch.no_grad(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                model(x.double(), y.double())
                model(x[:1], y)
        assert [w.category for w in said] == [RuntimeWarning], said
        assert "float64" in str(said[0].message), said[0]
        assert said[0].filename == "<string>", said[0].filename
        kernel_alone = UnguardedModelNew(64)
        with torch.no_grad():
            ran.clear(); kernel_alone(x[:1], y); assert ran
    """)  # fmt: skip


@pytest.mark.soak
def test_the_guard_is_cheap(folder: Path) -> None:
    """A loose bound, for a busy machine: it is about 6 microseconds on a quiet one."""
    script(folder, """
        import timeit
        with torch.no_grad():
            model(x, y)
            model._ww_state.calls = dict.fromkeys(model._ww_state.calls, lambda *args: None)
            best = min(timeit.repeat(lambda: model.forward(x, y), number=200, repeat=200)) / 200
        assert best < 30e-6, best
    """)  # fmt: skip


def test_a_missing_compiler_means_the_reference_and_one_warning(tmp_path: Path) -> None:
    source = "from warpwright_native import load_cpp\n" + KERNEL.replace(
        "ran = []", "ran = []\nlib = load_cpp('extern \"C\" int one() { return 1; }')\nlib.one.restype = None"
    ).replace("ran.append(1)", "lib.one()")
    candidate = Candidate(source=source, language=Language.CPP)
    wanted = replace(export(source), problem=read_problem(PROBLEM, "p"), candidate=candidate, facts=FACTS)
    (tmp_path / "kernel.py").write_text(build(wanted), encoding="utf-8")
    good, said = scripts.run("import os; os.environ['CXX'] = '/nonexistent/g++'\n" + PRELUDE + textwrap.dedent("""
        with torch.no_grad():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                right(x, y); right(x, y); right(x[:1], y)
            assert len(said) == 1 and "does not run here" in str(said[0].message), said
    """), tmp_path)  # fmt: skip
    assert good, said
    source = source.replace("return 1;", "return no_such_name;")
    (tmp_path / "broken.py").write_text(build(replace(export(source), problem=read_problem(PROBLEM, "p"), facts=FACTS)))
    done = scripts.run_file(tmp_path / "broken.py", "--check")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("cannot check here: RuntimeError: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_kernel_with_openmp_runs_with_the_threads_that_it_was_judged_with(tmp_path: Path) -> None:
    source = "from warpwright_native import load_cpp\n" + KERNEL.replace("ran = []", """ran = []
lib = load_cpp(\'\'\'
extern "C" int team(int threads) {
  int seen = 0;
#pragma omp parallel num_threads(threads) reduction(+ : seen)
  seen += 1;
  return seen;
}
\'\'\')""").replace("ran.append(1)", "ran.append(lib.team(torch.get_num_threads()))")  # fmt: skip
    wanted = replace(export(source), problem=read_problem(PROBLEM, "p"), facts=FACTS)
    assert wanted.evaluation is not None
    assert wanted.evaluation.environment is not None
    judged = replace(wanted.evaluation, environment=replace(wanted.evaluation.environment, threads=3))
    text = build(replace(wanted, evaluation=judged, candidate=Candidate(source=source, language=Language.CPP)))
    assert "with 3 CPU threads: torch.set_num_threads(3)" in text
    (tmp_path / "kernel.py").write_text(text, encoding="utf-8")
    script(tmp_path, """
        with torch.no_grad():
            falls_back(x, y)  # torch has one
            torch.set_num_threads(3)
            uses_kernel(x, y)
            assert ran == [3], ran
            torch.set_num_threads(2)
            falls_back(x, y)
    """)  # fmt: skip


def test_a_missing_triton_means_the_reference(tmp_path: Path) -> None:
    source = "import triton\nimport triton.language as tl\nfrom triton.language import exp\n" + KERNEL.replace(
        "ran = []",
        "ran = []\n@triton.autotune([triton.Config({'B': 1})], key=[])\n@triton.jit\ndef add(x, B: tl.constexpr): pass",
    ).replace("ran.append(1)", "add[(1,)](x)")
    candidate = Candidate(source=source, language=Language.CPP)
    wanted = replace(export(source), problem=read_problem(PROBLEM, "p"), candidate=candidate, facts=FACTS)
    (tmp_path / "kernel.py").write_text(build(wanted), encoding="utf-8")
    hide = (
        "import sys\nfor name in [n for n in sys.modules if n.partition('.')[0] == 'triton']: del sys.modules[name]\n"
    )
    hide += "sys.modules['triton'] = None\n"
    good, said = scripts.run(hide + PRELUDE + textwrap.dedent("""
        with torch.no_grad(), warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            right(x, y)
            assert "triton" in kernel.ModelNew._ww_parts[2][0], kernel.ModelNew._ww_parts[2]
        assert sys.modules["triton"] is None and "triton.language" not in sys.modules
    """), tmp_path)  # fmt: skip
    assert good, said


def test_mutated_inputs_are_the_kernels_in_eager_mode_and_the_references_for_tracers(tmp_path: Path) -> None:
    problem = PROBLEM.replace("return x * self.scale + y", "return x.mul_(self.scale) + y") + "\nMUTATES = [0]\n"
    source = KERNEL.replace("return torch.addcmul(y, x, self.scale)", "return x.mul_(self.scale) + y")
    wanted = replace(export(source), problem=read_problem(problem, "p"), facts=FACTS)
    wanted = replace(wanted, candidate=Candidate(source=source, language=Language.TORCH))
    (tmp_path / "kernel.py").write_text(build(wanted), encoding="utf-8")
    good, said = scripts.run(PRELUDE + textwrap.dedent("""
        def mutates(model, x, y, by_kernel):
            ran.clear()
            given, version = x.clone(), x._version
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.testing.assert_close(model(x, y), given * kernel_scale + y)
            torch.testing.assert_close(x, given * kernel_scale)
            assert x._version > version and bool(ran) == by_kernel, ran

        kernel_scale = model.scale
        with torch.no_grad():
            for _ in range(2):
                mutates(model, x.clone(), y, True)
            mutates(torch.compile(model, fullgraph=True, backend="aot_eager"), x.clone(), y, False)
            both = x.clone()
            ran.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model(both, both)
            assert not ran
    """), tmp_path)  # fmt: skip
    assert good, said


def test_a_tensor_among_the_attributes_that_is_no_buffer_means_the_reference(tmp_path: Path) -> None:
    problem = PROBLEM.replace(
        '"seen", torch.zeros(()))', '"seen", torch.zeros(()))\n        self.table = torch.ones(64)'
    )
    problem = problem.replace("return x * self.scale + y", "return x * self.scale + y * self.table")
    wanted = replace(export(KERNEL), problem=read_problem(problem, "p"), facts=FACTS)
    wanted = replace(wanted, candidate=Candidate(source=KERNEL, language=Language.TORCH))
    (tmp_path / "kernel.py").write_text(build(wanted), encoding="utf-8")
    good, said = scripts.run(PRELUDE + textwrap.dedent("""
        with torch.no_grad():
            falls_back(x, y)
            model.table = torch.zeros(64)
            with warnings.catch_warnings(record=True):
                torch.testing.assert_close(model(x, y), x * model.scale)
                compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
                torch.testing.assert_close(compiled(x, y), x * model.scale)
    """), tmp_path)  # fmt: skip
    assert good, said


@pytest.mark.parametrize("arguments", [("--info",), ("--check",), ()])
def test_no_argument_ends_in_a_traceback_without_torch(folder: Path, arguments: tuple[str, ...]) -> None:
    hide = "import sys, runpy; sys.modules['torch'] = None; sys.argv[1:] = @; "
    hide += "runpy.run_path('kernel.py', run_name='__main__')"
    command = [sys.executable, "-S", "-c", hide.replace("@", repr(list(arguments)))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    if arguments == ("--info",):
        assert (done.returncode, done.stderr) == (0, "")
        assert "Made by Warpwright." in done.stdout
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("cannot check here: ModuleNotFoundError: ")


def test_a_file_carries_only_what_its_kernel_needs() -> None:
    problem = PROBLEM.replace("WORKLOADS", "# WORKLOADS")
    cpu = replace(
        export("from warpwright_native import load_cpp\n" + KERNEL), facts=FACTS, problem=read_problem(problem, "p")
    )
    text = build(cpu)
    assert "def load_cpp" in text
    assert "cuda" not in text.lower()
    assert "increment_version" not in text
    cuda = replace(cpu, device_kind=DeviceKind.CUDA, candidate=Candidate(source=KERNEL, language=Language.TRITON))
    text = build(cuda)
    assert "get_num_threads" not in text
    assert "_WW_NATIVE" not in text
    assert "#:" not in text


def test_the_check_runs_the_kernel_itself(folder: Path) -> None:
    done = scripts.run_file(folder / "kernel.py", "--check", "--no-time", "--seeds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = (folder / "kernel.py").read_text(encoding="utf-8").replace("['rows', 64]", "[7, 64]")
    (folder / "narrow.py").write_text(wrong, encoding="utf-8")
    done = scripts.run_file(folder / "narrow.py", "--check", "--no-time", "--seeds", "1")
    assert done.returncode == 1
    assert "does not let the kernel run" in done.stdout


def test_the_domain_is_readable(folder: Path) -> None:
    text = (folder / "kernel.py").read_text(encoding="utf-8")
    assert "'shapes': [['rows', 64], ['rows', 64]]" in text
    assert "device='cpu'" in text


def test_a_general_domain_ties_equal_sizes_and_frees_the_rest() -> None:
    general = replace(read_problem(PROBLEM, "p"), domain=Domain.GENERAL)
    found = domain(general, DeviceKind.CPU, FACTS)
    assert not found["dense"]
    assert found["forms"] == [
        {"dtypes": [["float32"] * 2], "shapes": [["rows", "columns"]] * 2, "strides": [[], []]},
    ]


def test_layouts_that_are_not_contiguous_are_kept_exactly() -> None:
    facts = [
        WorkloadFacts(workload="a", inputs=("bfloat16 [8, 64] stride [1, 8]", "int64 []"), outputs=(), bytes_moved=0)
    ]
    [form] = domain(read_problem(PROBLEM, "p"), DeviceKind.CPU, facts)["forms"]
    assert form == {
        "dtypes": [["bfloat16", "int64"]],
        "shapes": [[8, 64], []],
        "strides": [[[[8, 64], [1, 8]]], []],
    }


def test_sizes_that_nothing_varies_admit_no_others() -> None:
    """Workloads that are told apart by a word alone were not tried in between."""
    text = PROBLEM.replace('"rows": 8, "columns": 64', '"case": "a"').replace(
        '"rows": 33, "columns": 64', '"case": "b"'
    )
    text = text.replace("rows=8, columns=64", 'case="a"').replace("columns=64", 'case="a"')
    forms = domain(read_problem(text, "p"), DeviceKind.CPU, FACTS)["forms"]
    assert [form["shapes"] for form in forms] == [[list(shape)] * 2 for shape in ((8, 64), (33, 64))]


def test_facts_that_cannot_be_read_admit_nothing() -> None:
    facts = [WorkloadFacts(workload="a", inputs=("something else",), outputs=(), bytes_moved=0)]
    assert domain(read_problem(PROBLEM, "p"), DeviceKind.CPU, facts)["forms"] == []


def test_a_replaced_dict_among_the_attributes_means_the_reference(tmp_path: Path) -> None:
    problem = PROBLEM.replace('"seen", torch.zeros(()))', '"seen", torch.zeros(()))\n        self.by = {"one": 1.0}')
    problem = problem.replace("+ y", '+ y * self.by["one"]')
    wanted = replace(export(KERNEL), problem=read_problem(problem, "p"), facts=FACTS)
    wanted = replace(wanted, candidate=Candidate(source=KERNEL, language=Language.TORCH))
    (tmp_path / "kernel.py").write_text(build(wanted), encoding="utf-8")
    script(tmp_path, """
        with torch.no_grad():
            uses_kernel(x, y)
            uses_kernel(x, y)
            model.by = {"one": 0.0}
            ran.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.testing.assert_close(model(x, y), x * model.scale)
            assert not ran
    """)  # fmt: skip
