"""`warpwright capture`: a script's slowest parts as problem files, and kernels put back into the model."""

from __future__ import annotations

import copy
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.problem import read_problem
from evaluator.screening.restricted import is_restricted
from tests.support import scripts
from tests.support.warm_python import warm_python
from warpwright import capture as capturing
from warpwright.capture.in_script.files import Folder
from warpwright.capture.in_script.recording import Recorder
from warpwright.capture.in_script.session import write
from warpwright.cli import commands
from warpwright.errors import ExitCode

pytestmark = pytest.mark.compiles  # interpreters with torch

MODEL = """import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(16, 16)
        self.register_buffer("shift", torch.arange(16.0))

    def forward(self, x, *, scale=1.0, mask=None):
        b, t, _ = x.shape
        y = self.lin(x).reshape(b * t, 16) * scale + self.shift
        return y.reshape(b, t, 16), None


class Random(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.random = Random()

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=2.0)[0]
        return self.random(x)


def soften(x, places):
    return torch.softmax(x, -1).transpose(0, 1)[places]
"""
RUN = """import sys, torch
import network
from network import Net, soften

assert sys.argv[1:] == ["--steps", "3"] and "main" not in sys.modules
torch.manual_seed(0)
net = Net().eval()
soft = torch.compile(soften)
with torch.no_grad():
    for step in range(int(sys.argv[2])):
        y = net(torch.randn(2, 4 + step % 2, 16))
        soft(y[0], torch.arange(3))
"""
KERNEL = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Module()
        self.lin.weight = torch.nn.Parameter(torch.zeros(16, 16))
        self.lin.bias = torch.nn.Parameter(torch.zeros(16))
        self.register_buffer("shift", torch.zeros(16))

    def forward(self, x):
        made = (x @ self.lin.weight.t() + self.lin.bias) * 2.0 + self.shift
        print("kernel", tuple(x.shape))
        return made
"""
PUT_BACK = """import contextlib, io, torch
from put_back import put_back, undo
from network import Net

def used(module, *args, **kwargs):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        module(*args, **kwargs)
    return out.getvalue().count("kernel")

torch.manual_seed(0)
net = Net().eval()
net.random = torch.nn.Identity()
first = net.blocks[0]
x, other = torch.randn(2, 4, 16), torch.randn(2, 5, 16)
expected = net(x), net(other), first(x, scale=3.0)[0]
assert put_back(net, {"block": "kernel.py"}) == [("blocks.0", "block"), ("blocks.1", "block")]
assert used(net, x) == 0 and net(x).requires_grad  # a gradient is wanted
net.train()
with torch.no_grad():
    assert used(net, x) == 0  # another mode
    net.eval()
    torch.testing.assert_close((net(x), net(other)), expected[:2])
    assert used(net, x) == 2
    assert used(first, x[:1], scale=2.0) == 0 and used(first, x, scale=3.0) == 0  # other calls
    assert torch.equal(first(x, scale=3.0)[0], expected[2])
    first.lin.bias.fill_(0)  # later weights are the kernel's, too
    right = x @ first.lin.weight.t() * 2 + torch.arange(16.0)
    torch.testing.assert_close(first(x, scale=2.0)[0], right)
    assert used(first, x, scale=2.0) == 1
    first.shift = torch.zeros(16)  # another tensor
    torch.testing.assert_close(first(x, scale=2.0)[0], right - torch.arange(16.0))
    undo(net)
    assert used(net, x) == 0
try:
    put_back(net, {"gate": "kernel.py"})
except LookupError as error:
    assert "gate is no part of the last capture: " in str(error) and "block" in str(error)
else:
    raise AssertionError("gate was not captured")
text = open("kernel.py").read().replace("self.lin.bias", "self.lin.other")
open("renamed.py", "w").write(text)
try:
    put_back(Net().eval(), {"block": "renamed.py"})
except LookupError as error:
    assert "lin.other is no parameter or buffer of network:Block" in str(error)
else:
    raise AssertionError("a drawn parameter is not the model's")
"""


ODD = """import functools, os, torch

class Doubler:
    def __call__(self, x):
        return x * 2

class Unprinted(torch.nn.Module):
    def __repr__(self):
        raise RuntimeError("no words")
    def forward(self, x):
        return x + 1

class Sum(torch.nn.Module):
    def forward(self, x):
        return (x @ x).to_dense()

os.makedirs("elsewhere")
os.chdir("elsewhere")
raised = torch.compile(functools.partial(torch.pow, exponent=2))
doubled = torch.compile(Doubler())
lazy = torch.nn.LazyLinear(16)
x = torch.randn(4, 16)
with torch.no_grad():
    for _ in range(3):
        y = lazy(Unprinted()(doubled(raised(x))))
        Sum()(torch.eye(4).to_sparse())
        torch.nn.ReLU()(x.to("meta"))
assert torch.equal(y, lazy((x**2) * 2 + 1))
assert not torch.cuda.is_initialized()  # a script may fork, and use it then
print("the end")
"""


class Holder(torch.nn.Module):
    """Keeps a tensor that is neither a parameter nor a buffer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = torch.randn(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.unsqueeze(-1) * self.table).sum(-1)


class Tied(torch.nn.Module):
    """Has one weight under two names, beside a tensor that is written out."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
        self.second.weight = self.first.weight
        self.scale = torch.full((16,), 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.second(self.first(x)) * self.scale
        return made


class Scaled(torch.nn.Module):
    """Has attributes that it does not print: `scale` decides what it computes, `layer` nothing, `calls` changes."""

    def __init__(self, layer: int, scale: float) -> None:
        super().__init__()
        self.layer, self.scale, self.calls = layer, scale, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(x * self.scale)


class Stacked(torch.nn.Module):
    """Has tensors in submodules, two of which would have one name."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.BatchNorm1d(16))
        self.scaling, self.layers_0 = torch.nn.Module(), torch.nn.Module()
        self.scaling.factor = torch.nn.Parameter(torch.rand(16))
        self.layers_0.weight = torch.nn.Parameter(torch.rand(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) * self.scaling.factor + self.layers_0.weight


class Named(torch.nn.Module):
    """Returns a dict with the given key."""

    def __init__(self, key: object) -> None:
        super().__init__()
        self.key = key

    def forward(self, x: torch.Tensor) -> dict[object, torch.Tensor]:
        return {self.key: torch.sigmoid(x)}


class Options(torch.nn.Module):
    """Takes plain values beside its tensor."""

    def forward(self, x: torch.Tensor, *, scale: object = 1.0, axes: object = (0, -1)) -> torch.Tensor:
        return x * float(f"{scale:g}") + len(axes)  # type: ignore[arg-type]


def captured(module: torch.nn.Module, folder: Path, *others: torch.nn.Module, overwrite: bool = False) -> int:
    recorder = Recorder()
    recorder.only = f"{type(module).__module__}:{type(module).__qualname__}"
    with torch.no_grad(), recorder.watching():
        for one in (module, *others):
            one(torch.randn(2, 16))
    return write(recorder, Folder(folder, overwrite=overwrite), 10, 60)


def put_back(module: torch.nn.Module, folder: Path, part: str) -> list[tuple[str, str]]:
    """Put a part's own reference back into a module as its kernel."""
    text = (folder / f"{part}.py").read_text(encoding="utf-8")
    (folder / "kernel.py").write_text(text.replace("class Model(", "class ModelNew("), encoding="utf-8")
    names = runpy.run_path(str(folder / "put_back.py"))
    replaced: list[tuple[str, str]] = names["put_back"](module, {part: str(folder / "kernel.py")})
    return replaced


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the arguments that choose a Python with torch loaded: each other one imports it for three seconds.

    The first two tests run this Python, as users do.
    """
    with warm_python(tmp_path_factory.mktemp("warm")) as executable:
        yield ["--python", str(executable)]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "network.py").write_text(MODEL, encoding="utf-8")
    path = tmp_path / "run.py"
    path.write_text(RUN, encoding="utf-8")
    return path


def test_the_slowest_parts_are_written_and_put_back(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Real shapes are workloads with their frequencies as weights; a kernel answers the calls that were recorded."""
    assert commands.run(["capture", "-o", "parts", str(script), "--steps", "3"]) == ExitCode.OK
    shown = capfd.readouterr()
    folder = script.parent / "parts"
    told = json.loads((folder / "parts.json").read_text(encoding="utf-8"))
    assert {"net", "random"} & set(told) == set()  # random parts are named, with what to do
    assert "it is random (dropout): run the script with the model in .eval()" in shown.err
    assert {"block", "linear", "soften"} <= set(told)
    problem = read_problem((folder / "block.py").read_text(encoding="utf-8"), "block")
    weights = {one.sizes["x_1"]: one.weight for one in problem.workloads}
    assert weights == {4: 4.0, 5: 2.0}
    (folder / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (folder / "network.py").write_text(MODEL, encoding="utf-8")
    checks = "import block\n(x,) = block.get_inputs(x_1=7)\nassert block.Model()(x).shape == (2, 7, 16)\n"
    checks += "import soften\nx, places = soften.get_inputs()\nassert places.max() < 3\nsoften.Model()(x, places)\n"
    right, words = scripts.run(checks + PUT_BACK, folder)
    assert right, words
    assert words.count("kernel (2, 5, 16)") == 2


def test_a_file_that_is_no_script_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.bin").write_bytes(b"\x00\x01")
    assert commands.run(["capture", str(tmp_path / "model.bin")]) == ExitCode.BAD_USAGE
    assert "is no Python source" in capfd.readouterr().err
    (tmp_path / "run.py").touch()
    assert commands.run(["capture", "-o", str(tmp_path / "run.py"), str(tmp_path / "run.py")]) == ExitCode.BAD_USAGE
    assert "is a file; name another with -o" in capfd.readouterr().err


def test_a_module_is_run_as_python_runs_it(script: Path, warm: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Relative imports work, and what the script defines itself belongs to __main__."""
    package = script.parent / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "network.py").write_text(MODEL, encoding="utf-8")
    text = RUN.replace("import network\nfrom network", "from .network").replace(' and "main" not in sys.modules', "")
    (package / "main.py").write_text(text, encoding="utf-8")
    assert commands.run(["capture", "-m", "package.main", "--steps", "3"]) == ExitCode.OK, capfd.readouterr().err
    assert (script.parent / "captured" / "block.py").is_file()
    for words, name in {"no module of that name": "absent", "No module named 'absent'": "absent.main",
                        "or it has no __main__": "package"}.items():  # fmt: skip
        assert commands.run(["capture", *warm, "-m", name]) == ExitCode.NOT_PASSED
        assert words in capfd.readouterr().err
    for words, arguments in {"-m takes a module's name": ["-m", "package/main.py"],
                             "a module's name needs -m": ["package.main"]}.items():  # fmt: skip
        assert commands.run(["capture", *arguments]) == ExitCode.BAD_USAGE
        assert words in capfd.readouterr().err


def test_an_edited_file_is_left_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, module = tmp_path / "linear.py", torch.nn.Linear(16, 16).eval()
    path.write_text("# mine\n", encoding="utf-8")
    assert captured(module, tmp_path) == 1
    assert f"left as it is: {path} was edited" in capfd.readouterr().err
    assert path.read_text(encoding="utf-8") == "# mine\n"
    path.unlink()
    assert captured(module, tmp_path) == 0
    assert captured(torch.nn.Linear(16, 8).eval(), tmp_path) == 0  # another text, and the first was not edited
    assert "left as it is" not in capfd.readouterr().err
    edited = path.read_text(encoding="utf-8") + "# mine\n"
    path.write_text(edited, encoding="utf-8")
    for _ in range(2):
        assert captured(module, tmp_path) == 1
        assert path.read_text(encoding="utf-8") == edited
    assert captured(module, tmp_path, overwrite=True) == 0
    assert "# mine" not in path.read_text(encoding="utf-8")
    assert "linear" in json.loads((tmp_path / "parts.json").read_text(encoding="utf-8"))


def test_a_large_tensor_that_is_no_state_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Drawn again it would be another one, and put_back finds it under no name."""
    assert captured(Holder(1025), tmp_path) == 1
    assert "it keeps the tensor table of 1025 elements, too many to write out" in capfd.readouterr().err


def test_tied_weights_and_written_constants_are_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert captured(Tied().eval(), tmp_path) == 0, capfd.readouterr().err
    text = (tmp_path / "tied.py").read_text(encoding="utf-8")
    kernel = text.replace("class Model(", "class ModelNew(").replace(
        "        return ", "        torch.called = True\n        return "
    )
    (tmp_path / "kernel.py").write_text(kernel, encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "put_back.py"))
    module, untied, x = Tied().eval(), Tied().eval(), torch.randn(2, 16)
    untied.second.weight = torch.nn.Parameter(torch.randn(16, 16))
    monkeypatch.setattr(torch, "called", False, raising=False)
    with torch.no_grad():
        right = module(x)
        assert names["put_back"](module, {"tied": str(tmp_path / "kernel.py")}) == [("", "tied")]
        torch.testing.assert_close(module(x), right)
        assert torch.called
    assert names["put_back"](untied, {"tied": str(tmp_path / "kernel.py")}) == []


def test_tensors_of_submodules_are_the_files_own_and_come_from_where_they_were(tmp_path: Path) -> None:
    """A file with calls that build submodules could reach the judge's harness: small gains would not be promoted."""
    module = Stacked().eval()
    assert captured(module, tmp_path) == 0
    text = (tmp_path / "stacked.py").read_text(encoding="utf-8")
    own = ("layers_0_weight", "layers_2_running_mean", "scaling_factor", "layers_0_weight_")
    assert all(f"self.{name} = " in text or f'register_buffer("{name}", ' in text for name in own)
    assert is_restricted(text.replace("class Model(", "class ModelNew(").partition("    def forward")[0])
    x = torch.randn(2, 16)
    with torch.no_grad():
        expected = module(x)
        assert put_back(module, tmp_path, "stacked") == [("", "stacked")]
        assert torch.allclose(module(x), expected)
        module.layers[0].weight.mul_(2)
        assert not torch.allclose(module(x), expected)


def test_one_class_or_function_is_captured_by_its_path(
    script: Path, warm: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert commands.run(["capture", *warm, "--only", "network:soften", str(script), "--steps", "3"]) == ExitCode.OK
    assert [one.name for one in Path("captured").glob("*.py") if one.name != "put_back.py"] == ["soften.py"]
    for words, arguments in {
        "no such script": ["capture", "absent.py"],
        "package.module:Name": ["capture", "--only", "network", str(script)],
        "cannot be run": ["capture", "--python", "/absent/python", str(script)],
    }.items():
        assert commands.run(arguments) == ExitCode.BAD_USAGE
        assert words in capfd.readouterr().err
    Path("short.py").write_text("import network\n", encoding="utf-8")
    assert commands.run(["capture", *warm, "--only", "network:Absent", "short.py"]) == ExitCode.NOT_PASSED
    assert "cannot be found with this Python" in capfd.readouterr().err


def test_modules_that_compute_something_else_keep_their_forward(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They print as the captured one does and have its parameters, but another attribute decides."""
    model = torch.nn.ModuleList([Scaled(0, 0.5), Scaled(1, 2.0), Scaled(2, 0.5)])
    assert captured(model[0], tmp_path, model[1], model[2]) == 0
    shown = capfd.readouterr().err
    assert "1 of 3 modules of" in shown
    assert "Scaled: they compute something else (layer, scale)" in shown
    fresh, x = torch.nn.ModuleList([Scaled(0, 0.5), Scaled(1, 2.0), Scaled(2, 0.5), Scaled(3, 7.0)]), torch.randn(2, 16)
    with torch.no_grad():
        right = [one(x) for one in fresh]
        assert put_back(fresh, tmp_path, "scaled") == [("0", "scaled"), ("2", "scaled")]
        for one, expected in zip(fresh, right, strict=True):
            torch.testing.assert_close(one(x), expected)


@pytest.mark.parametrize("key", [0, "tensor", "value"])
def test_dicts_come_back_with_their_keys(key: object, tmp_path: Path) -> None:
    module, x = Named(key), torch.randn(2, 16)
    assert captured(module, tmp_path) == 0
    with torch.no_grad():
        right = module(x)
        assert put_back(module, tmp_path, "named") == [("", "named")]
        torch.testing.assert_close(module(x), right)


def test_a_dict_whose_keys_json_cannot_tell_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert captured(Named((1, 2)), tmp_path) == 1
    assert "it returns a dict with the key (1, 2): use text or whole numbers" in capfd.readouterr().err


def test_calls_under_autocast_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Traced without it, they would be another operation: a kernel for it is used in none of these calls."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert captured(torch.nn.Linear(16, 16).eval(), tmp_path) == 1
    assert "it runs under torch.autocast, where no kernel is used" in capfd.readouterr().err


def test_a_script_that_ends_its_process_is_told(
    tmp_path: Path, warm: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """An older capture in the folder is not taken for this one."""
    script, folder = tmp_path / "run.py", tmp_path / "parts"
    folder.mkdir()
    (folder / "parts.json").write_text("{}", encoding="utf-8")
    script.write_text("import os\n\nos._exit(0)\n", encoding="utf-8")
    assert commands.run(["capture", *warm, "-o", str(folder), str(script)]) == ExitCode.NOT_PASSED
    assert "ended its process itself" in capfd.readouterr().err


def test_a_script_runs_on_where_its_calls_cannot_be_recorded(
    tmp_path: Path, warm: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects without a name, sparse and meta tensors, uninitialised weights, a changed folder: the rest is written."""
    monkeypatch.chdir(tmp_path)
    Path("run.py").write_text(ODD, encoding="utf-8")
    assert commands.run(["capture", *warm, "-o", "parts", "run.py"]) == ExitCode.OK
    shown = capfd.readouterr()
    assert "the end" in shown.out
    assert {"partial.py", "doubler.py", "linear.py"} <= {path.name for path in Path("parts").iterdir()}
    assert "__main__:Unprinted: its calls cannot be recorded (RuntimeError: no words)" in shown.err
    assert "__main__:Sum (" in shown.err
    assert "it cannot be written (RuntimeError" in shown.err


def test_an_interrupted_script_ends_without_our_traceback(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    options = {"script": str(script), "module": False, "arguments": [], "output": str(tmp_path / "parts"),
               "overwrite": False, "only": None, "most": 1, "largest": 60}  # fmt: skip
    program = Path(capturing.__file__).parent / "in_script" / "main.py"
    command = [sys.executable, str(program), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_calls_under_another_default_dtype_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Operators that make tensors would make others in the judge's process."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert captured(torch.nn.Linear(16, 16).eval(), tmp_path) == 1
    finally:
        torch.set_default_dtype(torch.float32)
    assert "it runs under the default dtype torch.bfloat16" in capfd.readouterr().err


def test_a_copy_of_a_model_runs_kernels_on_its_own_weights(tmp_path: Path) -> None:
    module, x = Tied().eval(), torch.randn(2, 16)
    assert captured(module, tmp_path) == 0
    assert put_back(module, tmp_path, "tied") == [("", "tied")]
    with torch.no_grad():
        before, copied = module(x), copy.deepcopy(module)
        copied.first.weight.mul_(3)
        made = copied(x)
        assert vars(copied)["forward"] is not vars(module)["forward"]
        del copied.forward
        torch.testing.assert_close(made, copied(x))
        torch.testing.assert_close(module(x), before)


def test_a_forward_that_was_put_in_before_answers_other_calls_and_comes_back(tmp_path: Path) -> None:
    """Other tools replace the forward of instances, too."""
    module, x = torch.nn.Linear(16, 16).eval(), torch.randn(2, 16)
    assert captured(module, tmp_path) == 0

    def patched(given: torch.Tensor) -> torch.Tensor:
        return given * 0

    module.forward = patched  # type: ignore[method-assign]
    for _ in range(2):
        assert put_back(module, tmp_path, "linear") == [("", "linear")]
    with torch.no_grad():
        assert module(x).any()
        assert not module(x[:1]).any()
        runpy.run_path(str(tmp_path / "put_back.py"))["undo"](module)
        assert not module(x).any()
    assert module.forward is patched


def test_hooks_within_a_part_and_autocast_are_the_modules_own(tmp_path: Path) -> None:
    """A kernel calls no hook of a module within, and was made for the dtypes of calls without autocast."""
    module, x, seen = Tied().eval(), torch.randn(2, 16), list[torch.Tensor]()
    assert captured(module, tmp_path) == 0
    text = (tmp_path / "tied.py").read_text(encoding="utf-8").replace("        return ", "        return 0 * ")
    (tmp_path / "tied.py").write_text(text, encoding="utf-8")  # a kernel that can be told from the module
    assert put_back(module, tmp_path, "tied") == [("", "tied")]
    with torch.no_grad():
        assert not module(x).any()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert module(x).any()
        handle = module.second.register_forward_hook(lambda inner, args, output: seen.append(output))
        assert module(x).any()
        assert len(seen) == 1
        handle.remove()
        module.register_forward_hook(lambda inner, args, output: seen.append(output))
        assert not module(x).any()
        assert len(seen) == 2


def test_calls_with_other_arguments_are_the_modules_own_and_those_of_kernels_are_counted(tmp_path: Path) -> None:
    """Recorded calls are remembered by their look after the first one. 1, 1.0 and True are three arguments."""
    module, x = Options(), torch.randn(2, 16)
    assert captured(module, tmp_path) == 0
    names = runpy.run_path(str(tmp_path / "put_back.py"))
    assert names["used"](module) == {}
    assert put_back(module, tmp_path, "options") == [("", "options")]
    others: list[dict[str, object]] = [
        {"scale": 1.0}, {"scale": 1}, {"scale": True}, {"axes": (0, -1)}, {"axes": [0, -1]},
        {"axes": (0, -1), "scale": 1.0}, {"axes": torch.Size([0, 1])},
    ]  # fmt: skip
    with torch.no_grad():
        for answered in (1, 2):
            torch.testing.assert_close(module(x), x + 2)
            assert names["used"](module) == {"": answered}
            for other in others:
                torch.testing.assert_close(module(x, **other), x + 2)
            module(x[:1])
            module(x.double())
            assert names["used"](module) == {"": answered}
