"""`warpwright.optimize` and `@warpwright.kernel`, against a served API that plays the search. Some 10 s of CPU."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import warpwright
from tests.warpwright.fake_api import FakeApi, run_object
from warpwright import paths
from warpwright.api import Client
from warpwright.cli.sessions import Session
from warpwright.errors import BadUsage, Unreachable
from warpwright.library import kernels, optimizing
from warpwright.library.errors import NotPortable
from warpwright.library.loading import load_file
from warpwright.library.problems import Portable, arguments_of, bind, code_of, portable, signature_of
from warpwright.library.verifying import verify
from warpwright.stack.data_folder import DataFolder

EPS = 1e-5
OUTSIDE = torch.ones(3)


def rms(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def attend(x: torch.Tensor, w: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Is written into a file without this text."""
    y: torch.Tensor = rms(x) * math.pi
    return F.softmax(y * w, dim=dim)


def embed(index: torch.Tensor, table: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return table[index] * keep


def add_one(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


class Options:
    def __init__(self) -> None:
        self.gain = 2.0


class Norm(nn.Module):
    def __init__(self, n: int, options: Options) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n))
        self.options = options
        self.register_buffer("scale", torch.rand(n), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms(x) * self.weight * self.options.gain * self.scale


class Block(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.norm = Norm(n, Options())
        self.ff = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Dropout(0.5), nn.Linear(2 * n, n, bias=False))
        self.act = F.silu
        self.log = open(__file__, encoding="utf-8")  # noqa: SIM115  no part of what forward does
        self.log.close()

    def _inner(self, x: torch.Tensor) -> torch.Tensor:
        return self.ff(self.norm(x))  # type: ignore[no-any-return]

    def forward(self, x: torch.Tensor, double: bool = False) -> torch.Tensor:
        y = self.act(x + self._inner(x))
        return 2 * y if double else y


class Model(nn.Module):
    """Is called as the class in a problem file is."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().__call__ and self.b(self.a(x))


def problem_of(target: Callable[..., Any], inputs: Any) -> Portable:
    args, kwargs = arguments_of(inputs)
    return verify(portable(target, bind(signature_of(target), args, kwargs)), target)


X = torch.randn(6, 16)


@pytest.mark.parametrize(
    ("target", "inputs", "words"),
    [
        (attend, (X, torch.rand(16)), "return attend(x=x, w=w)"),
        (attend, ((X, torch.rand(16)), {"dim": 0}), "return attend(x=x, w=w, dim=0)"),
        (embed, (torch.arange(5), torch.randn(9, 4), torch.tensor(True)), "torch.randint(0, 5, [5]).to(torch.int64)"),
        (add_one, X.clone().t(), "MUTATES = [0]"),
        (Block(16), X, "SimpleNamespace(gain=2.0)"),
        (Block(16), {"x": X, "double": True}, "super().forward(x=x, double=True)"),
        (Model(), torch.randn(2, 4), "class Model(OriginalModel):"),
        (nn.Sequential(nn.Linear(16, 4), nn.ReLU()), X, "class Model(nn.Sequential):"),
        (nn.LayerNorm(16, dtype=torch.bfloat16), X.bfloat16(), "normalized_shape=(16,), dtype=torch.bfloat16"),
    ],
)  # fmt: skip
def test_a_function_or_module_becomes_a_file_that_answers_alike(
    target: Callable[..., Any], inputs: Any, words: str
) -> None:
    problem = problem_of(target, inputs)
    assert words in problem.source
    assert problem.source == problem_of(target, inputs).source
    assert code_of(problem.source) is not None


def scaled(x: torch.Tensor, w: torch.Tensor, step: float) -> torch.Tensor:
    return x * w * step


class Rms(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms(x)


@torch.no_grad()
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def calls_decorated(x: torch.Tensor) -> torch.Tensor:
    return decorated(x)


def shadow(x: torch.Tensor) -> torch.Tensor:
    return x * OUTSIDE.sum()


def foreign(x: torch.Tensor) -> torch.Tensor:
    return x * len(warpwright.__name__)


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.ones(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.table


@pytest.mark.parametrize(
    ("target", "inputs", "words"),
    [
        (shadow, X, "reads the tensor 'OUTSIDE' from outside"),
        (foreign, X, "uses the module 'warpwright', which the judge does not have"),
        (calls_decorated, X, "uses the function 'decorated', which is decorated"),
        (lambda x: x, X, "a def of its own"),
        (torch.softmax, X, "call it from a def of your own"),
        (Hidden(), X, "table is a tensor that is no parameter and no buffer"),
        (rms, X[:, ::2], "x has gaps or overlaps"),
        (attend, (X, object()), "argument 'w' has type object"),
        (rms, 3, "inputs has type int"),
        (nn.GRU(4, 4), torch.randn(3, 2, 4), "cannot be taken out of its surroundings"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(target: Callable[..., Any], inputs: Any, words: str) -> None:
    with pytest.raises(NotPortable, match=words):
        problem_of(target, inputs)


KERNEL = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return torch.zeros_like(x)
"""
BLOCK = """
import torch
class ModelNew(torch.nn.LayerNorm):
    def __init__(self):
        super().__init__((16,))
    def forward(self, x):
        return self.weight.expand_as(x)
"""
CHOSEN = """
import torch
from tests.warpwright.test_library import Block
class ModelNew(Block):
    def __init__(self):
        super().__init__(16)
        del self.log
    def forward(self, x):
        return torch.zeros_like(x)
"""
ZEROS = KERNEL.replace("x, w", "x")


def optimized(api: FakeApi, target: Any, inputs: Any) -> Any:
    return warpwright.optimize(target, inputs, seconds=5, server=api.url, quiet=True)


def test_a_champion_takes_the_functions_place_for_such_calls(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.kernel, w = KERNEL, torch.rand(16)
    fast = warpwright.optimize(attend, (X, w), seconds=5, candidates=3, proposers=["synthesiser"], server=api.url)
    assert api.bodies[1]["budget"] == {"wall_s": 5, "candidates": 3}
    assert api.bodies[1]["config"] == {"proposers": ["synthesiser"]}
    assert f"{api.url}/runs/run_1" in capfd.readouterr().err
    assert fast.__name__ == "attend"
    assert not fast(X, w=w).any()
    assert torch.equal(fast(X, w, dim=0), attend(X, w, dim=0)), "other plain values are the original's"
    with pytest.raises(TypeError):
        fast(X)


def test_another_limit_takes_the_place_of_the_time(api: FakeApi) -> None:
    api.kernel = KERNEL
    for limits, budget in (({"candidates": 3}, {"candidates": 3}), ({}, {"wall_s": 60})):
        api.bodies.clear()
        warpwright.optimize(attend, (X, torch.rand(16)), server=api.url, quiet=True, **limits)
        assert api.bodies[1]["budget"] == budget


def test_a_module_keeps_its_weights_and_its_mode(api: FakeApi) -> None:
    api.kernel = BLOCK
    norm = nn.LayerNorm(16).eval()
    fast = optimized(api, norm, X)
    assert fast.weight is norm.weight
    assert not fast.training
    with torch.no_grad():
        norm.weight.fill_(7)
    assert (fast(X) == 7).all()


def test_a_module_with_other_arguments_chooses(api: FakeApi) -> None:
    api.kernel = CHOSEN
    block = Block(16).eval()
    fast = optimized(api, block, {"x": X, "double": True})
    assert not fast(X, double=True).any()
    assert torch.equal(fast(X), block(X))


@pytest.mark.parametrize("end", ["no_improvement", "problem_refused"])
def test_without_a_champion_the_original_comes_back_with_the_reason(api: FakeApi, end: str) -> None:
    api.run = run_object(champion_id=None, end_reason=end, message="torch.compile is the advice.")
    with pytest.warns(warpwright.OptimizeWarning, match=r"torch.compile is the advice\. The original"):
        assert optimized(api, attend, (X, torch.rand(16))) is attend
    with pytest.warns(warpwright.OptimizeWarning, match="OUTSIDE"):
        assert optimized(api, shadow, X) is shadow


def test_its_own_stack_waits_for_other_processes_with_a_bound(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    @contextlib.contextmanager
    def session(*_: Any, **wanted: Any) -> Iterator[Session]:
        asked.update(wanted)
        with Client(api.url) as client:
            yield Session(client, lambda: None, tmp_path)

    monkeypatch.setattr(optimizing, "open_session", session)
    api.kernel = KERNEL
    warpwright.optimize(attend, (X, torch.rand(16)), seconds=5, data=tmp_path, quiet=True)
    assert 0 < asked["linger_s"] <= 60


def test_bad_use_and_no_service_are_errors() -> None:
    with pytest.raises(BadUsage, match="above 0"):
        warpwright.optimize(rms, X, seconds=0)
    with pytest.raises(BadUsage, match="candidates must be a number above 0"):
        warpwright.optimize(rms, X, candidates=0)
    with pytest.raises(TypeError, match=r"the inputs do not fit \(.*: too many positional arguments"):
        warpwright.optimize(rms, (X, X, X, X, X))
    with pytest.raises(Unreachable, match="no service answers"):
        warpwright.optimize(rms, X, server="http://127.0.0.1:9")


def test_the_decorator_runs_the_champion_that_was_kept_or_that_a_service_has(api: FakeApi) -> None:
    api.kernel, w = KERNEL, torch.rand(16)
    optimized(api, attend, (X, w))
    asked = len(api.asked)
    local = warpwright.kernel(attend)
    assert not local(X, w).any()
    assert len(api.asked) == asked, "a kept champion needs no service"
    assert torch.equal(local(X[:2], w), attend(X[:2], w)), "other shapes have none"
    api.champion = KERNEL
    other = X[:3].contiguous()
    problem = problem_of(attend, (other, w))
    api.known_keys, api.problem_source = [problem.key], problem.source.replace("torch.rand(", "2 * torch.rand(")
    served = warpwright.kernel(server=api.url)(attend)
    assert not served(other, w).any()
    assert not served(other, w).any()
    assert api.asked[asked:].count(("GET", "/api/v1/problems")) == 1


OTHER = "class Model(nn.Module):\n    def forward(self, x, w):\n        return 0 * x\n"


@pytest.mark.parametrize(
    "forge",
    [
        lambda source: source.replace("EPS = 1e-05", "EPS = 1e-06"),
        lambda source: source + "\n\n" + OTHER,
        lambda source: source.replace('""\n', f'""\nimport torch.nn as nn\n{OTHER}"""Next."""\n', 1),
        lambda source: source.replace("def get_inputs():\n", "def get_inputs():\n    global Model\n    Model = None\n"),
        lambda source: source.replace("return [", "return [setattr(Model, 'forward', abs), "),
        lambda source: source.replace("return [", "return [torch.hub.load('a', 'b'), "),
        lambda source: source.replace("\n\n\ndef get_i", "\nMUTATES = setattr(Model, 'forward', abs)\ndef get_i"),
    ],
    ids=["constant", "after", "before", "statement", "drawn", "loaded", "mutates"],
)
def test_a_problem_of_that_name_with_other_code_is_not_believed(api: FakeApi, forge: Callable[[str], str]) -> None:
    w = torch.rand(16)
    problem = problem_of(attend, (X, w))
    api.champion, api.known_keys = KERNEL, [problem.key]
    api.problem_source = forge(problem.source)
    assert api.problem_source != problem.source
    served = warpwright.kernel(server=api.url)(attend)
    assert torch.equal(served(X, w), attend(X, w))


def test_the_decorator_believes_only_a_stack_whose_owner_lives(api: FakeApi, tmp_path: Path) -> None:
    w = torch.rand(16)
    problem = problem_of(attend, (X, w))
    api.champion, api.known_keys, api.problem_source = KERNEL, [problem.key], problem.source
    folder = DataFolder(tmp_path)
    with folder.locked():
        folder.publish(api.url, stays=True)
        left = (tmp_path / "stack.json").read_text()
    (tmp_path / "stack.json").write_text(left)  # as a killed owner leaves it
    assert torch.equal(warpwright.kernel(data=tmp_path)(attend)(X, w), attend(X, w))
    assert api.asked == [], "whatever listens there now gets no key"
    with folder.locked():
        folder.publish(api.url, stays=True)
        assert not warpwright.kernel(data=tmp_path)(attend)(X, w).any()


GATED = """
import sys
gate = sys.modules["gate"]
gate.entered.set()
gate.go.wait(60)
class ModelNew: ...
"""


def test_a_kernel_is_seen_only_once_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = SimpleNamespace(entered=threading.Event(), go=threading.Event())
    monkeypatch.setitem(sys.modules, "gate", gate)
    path, whole = tmp_path / "gated.py", list[bool]()
    path.write_text(GATED)
    threads = [threading.Thread(target=lambda: whole.append(hasattr(load_file(path), "ModelNew"))) for _ in range(2)]
    threads[0].start()
    assert gate.entered.wait(60)
    threads[1].start()
    threads[1].join(0.2)  # without a lock it ends here, with half a module
    gate.go.set()
    for thread in threads:
        thread.join(60)
    assert whole == [True, True]


def test_the_decorator_looks_up_a_bounded_number_of_forms(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST_FORMS", 2)
    served, w = warpwright.kernel(server=api.url)(scaled), torch.rand(16)
    for step in range(4):
        assert torch.equal(served(X, w, step / 10), scaled(X, w, step / 10))
    assert api.asked.count(("GET", "/api/v1/problems")) == 2


def test_a_champion_that_cannot_be_loaded_is_a_warning(api: FakeApi) -> None:
    api.kernel, w = KERNEL, torch.rand(16)
    optimized(api, attend, (X, w))
    (kept,) = (paths.default_data_dir() / "kernels").iterdir()
    kept.write_text("1 / 0")
    local = warpwright.kernel(attend)
    with pytest.warns(warpwright.OptimizeWarning, match="runs as it is written: ZeroDivisionError"):
        assert torch.equal(local(X, w), attend(X, w))
    assert torch.equal(local(X, w), attend(X, w))


def closed() -> tuple[Callable[..., Any], Callable[[float], None], list[int]]:
    gain, shifts = 2.0, [1]

    def inner(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w * gain + shifts[0]

    def change(value: float) -> None:
        nonlocal gain
        gain = value

    return inner, change, shifts


@pytest.mark.parametrize("replaced", [optimized, lambda api, target, inputs: warpwright.kernel(target)])
def test_a_changed_value_from_outside_is_the_originals(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, replaced: Callable[..., Any]
) -> None:
    api.kernel, w = KERNEL, torch.rand(16)
    optimized(api, attend, (X, w))
    fast = replaced(api, attend, (X, w))
    assert not fast(X, w).any()
    monkeypatch.setattr(sys.modules[__name__], "EPS", 0.5)
    assert torch.equal(fast(X, w), attend(X, w))
    inner, change, shifts = closed()
    optimized(api, inner, (X, w))
    fast = replaced(api, inner, (X, w))
    assert not fast(X, w).any()
    change(3.0)
    assert torch.equal(fast(X, w), inner(X, w))
    change(2.0)
    assert not fast(X, w).any()
    shifts[0] = 5
    assert torch.equal(fast(X, w), inner(X, w))


def test_a_module_that_reads_a_changed_value_is_the_original(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.kernel = ZEROS
    fast = copy.deepcopy(optimized(api, Rms(), X))
    assert not fast(X).any()
    monkeypatch.setattr(sys.modules[__name__], "EPS", 0.5)
    assert torch.equal(fast(X), rms(X))


def forget_kernels() -> None:
    """Forget imported kernels, as in another process."""
    for name in [name for name in sys.modules if name.startswith("warpwright_kernel_")]:
        del sys.modules[name]


def test_pickles_of_modules_carry_the_kernel(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api.kernel, norm = BLOCK, nn.LayerNorm(16).eval()
    fast = optimized(api, norm, X)
    nested = pickle.dumps(nn.Sequential(fast, nn.ReLU()))
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(tmp_path / "elsewhere"))
    forget_kernels()
    again, _ = pickle.loads(nested)
    assert type(again).__name__ == "ModelNew"
    assert type(again) is not type(fast)
    assert not again.training
    assert torch.equal(again(X), fast(X))
    assert copy.deepcopy(again).weight is not again.weight
    assert (tmp_path / "elsewhere").is_dir(), "the kernel's file is kept"


def test_pickles_of_modules_that_choose_go_on_choosing(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.kernel = CHOSEN
    block = Block(16).eval()
    del block.log  # an open file, as no pickle holds
    fast = optimized(api, block, {"x": X, "double": True})
    assert not fast.training
    pickled = pickle.dumps(fast)
    assert len(pickled) < 40_000, "the inputs are not in it"
    forget_kernels()
    again = pickle.loads(pickled)
    assert not again(X, double=True).any()
    assert torch.equal(again(X), block(X))
    api.kernel = ZEROS
    again = pickle.loads(pickle.dumps(optimized(api, Rms(), X)))
    assert not again(X).any()
    monkeypatch.setattr(sys.modules[__name__], "EPS", 0.5)
    assert torch.equal(again(X), rms(X))


def test_a_value_of_an_inner_function_is_in_no_pickle(api: FakeApi) -> None:
    inner, _, _ = closed()
    (found, *_) = problem_of(inner, (X, torch.rand(16))).baked
    with pytest.raises(pickle.PicklingError, match="of an inner function"):
        pickle.dumps(found)


def test_the_decorator_warns_once_and_runs_the_function_where_it_cannot_look(api: FakeApi) -> None:
    lost = warpwright.kernel(server="http://127.0.0.1:9")(attend)
    w = torch.rand(16)
    with pytest.warns(warpwright.OptimizeWarning, match="attend runs as it is written: no service answers"):
        assert torch.equal(lost(X, w), attend(X, w))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost(X, w)


def test_importing_it_is_light(tmp_path: Path) -> None:
    code = (
        "import sys, warpwright; heavy = {'torch', 'httpx2', 'rich', 'typer'} & set(sys.modules); sys.exit(str(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.strip() == "set()"
