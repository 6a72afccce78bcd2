"""Exported kernels used as people use modules: the reference's results and errors everywhere.

`make take-home` runs every use with every problem in every format, and prints a table.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import scripts
from tests.take_home import matrix
from tests.take_home.exports import DROP_INS, OWN, taken

pytestmark = pytest.mark.compiles

COMPILES = {use for use in matrix.USES if "compiled" in use} | {
    "exported", "layer_hooked", "wrapped_layer", "patched_layer", "weight_norm",
}  # fmt: skip
QUICK = [use for use in matrix.USES if use not in COMPILES]
BY_THE_KERNEL = {
    "plain", "again", "compiled", "compiled_in_place", "exported", "made_fx", "deep_copied", "pickled", "keywords",
    "state", "traced",
}  # fmt: skip
IN_FOLDERS = ["plain", "compiled", "pickled", "changed_attribute"]
CASES = [("nested_modules", "py", matrix.USES), *((name, "py", QUICK) for name in OWN if name != "nested_modules")]
CASES += [("nested_modules", form, IN_FOLDERS) for form in DROP_INS if form != "py"]
PICKS_CUDA = torch.version.cuda is not None and not torch.cuda.is_available()
WHY_NOT = "kernels takes the CUDA variant for a CUDA build of torch, which needs a GPU"


@pytest.mark.parametrize(("name", "form", "uses"), CASES, ids=[f"{name}-{form}" for name, form, _ in CASES])
@pytest.mark.timeout(400)
def test_every_use_ends_as_with_the_reference(name: str, form: str, uses: list[str], tmp_path: Path) -> None:
    if form == "hf-kernel" and PICKS_CUDA:
        pytest.skip(WHY_NOT)
    told: dict[str, Any] = matrix.used(name, form, tmp_path, uses=uses)
    assert {use: verdict for use, (verdict, *_) in told["uses"].items() if verdict != "equal"} == {}
    assert told["broken"] == []
    idle = {
        use for use, (_, calls, raised) in told["uses"].items() if use in BY_THE_KERNEL and not calls and not raised
    }
    assert idle == set()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_use_with_every_problem_in_every_format() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.take_home.matrix"], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", [OWN[0], *(pytest.param(name, marks=pytest.mark.soak) for name in OWN[1:])])
def test_the_check_passes(name: str, tmp_path: Path) -> None:
    taken(name).write("py", tmp_path)
    done = scripts.run_file(tmp_path / "kernel.py", "--check", "--no-time", "--seeds", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PICKS_CUDA, reason=WHY_NOT)
def test_the_real_kernels_package_puts_the_layer_into_a_model(tmp_path: Path) -> None:
    taken("nested_modules").write("hf-kernel", tmp_path)
    good, said = scripts.run(textwrap.dedent("""
        import copy, warnings
        warnings.simplefilter("ignore")
        from pathlib import Path
        import kernels, torch
        torch.set_num_threads(1)
        folder = next(Path().glob("*/build")).parent
        found = kernels.get_local_kernel(folder)
        unguarded, ran = found.model.UnguardedModelNew.forward, []
        found.model.UnguardedModelNew.forward = lambda self, *args: (ran.append(1), unguarded(self, *args))[1]
        kernels.replace_kernel_forward_from_hub(found.Model, "NestedModules")
        mapping = {"NestedModules": {"cpu": kernels.LocalLayerRepository(folder, layer_name="NestedModules")}}
        plain = found.Model(256).eval()
        model, x = copy.deepcopy(plain), torch.randn(64, 256)
        with torch.no_grad(), kernels.use_kernel_mapping(mapping):
            kernels.kernelize(model, mode=kernels.Mode.INFERENCE | kernels.Mode.TORCH_COMPILE, device="cpu")
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            for number, each in enumerate((model, compiled, copy.deepcopy(model)), 1):
                torch.testing.assert_close(each(x), plain(x))
                assert len(ran) == number, ran
            model.norm.eps = plain.norm.eps = 0.5
            for each in (model, compiled):
                torch.testing.assert_close(each(x), plain(x))
            assert len(ran) == 3, ran
    """), tmp_path)  # fmt: skip
    assert good, said


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_package_builds_a_wheel_whose_own_tests_pass(tmp_path: Path) -> None:
    """In a virtual environment of its own, which sees this one's torch."""
    taken("nested_modules").write("package", tmp_path)
    (package,) = tmp_path.iterdir()

    def ran(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "below.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")), "utf-8")
    ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(package))
    (wheel,) = tmp_path.glob("*.whl")
    ran(sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(site), str(wheel))
    python = str(tmp_path / "venv" / "bin" / "python")
    assert "PASSED" in ran(python, "-m", package.name, "--check", "--no-time")
    assert "evidence" in ran(python, "-m", package.name, "--info")
    assert "passed" in ran(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(package / "tests"))
