"""Problems in other projects' forms, read into problem files as text alone, and refused by name where that is due."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.problem import read_problem
from evaluator.types import Problem
from tests.support import scripts
from tests.warpwright import field_forms as forms
from tests.warpwright.fake_api import RUN_ID, FakeApi
from warpwright.cli import commands
from warpwright.errors import BadUsage, ExitCode
from warpwright.formats import Imported, import_all, import_one


def read(target: str, most: int = 8) -> tuple[Imported, Problem]:
    made = import_one(target, most)
    assert made is not None
    return made, read_problem(made.source, made.name)


def answers(made: Imported, folder: Path, checks: str) -> None:
    """Run a problem file as the judge does, and some checks of `inputs` and `out` by module `problem`."""
    (folder / "problem.py").write_text(made.source, encoding="utf-8")
    right, shown = scripts.run(
        "import torch, problem\n"
        "def call(**sizes):\n"
        "    inputs = problem.get_inputs(**{k: v for k, v in sizes.items() if k != 's'})\n"
        "    init = getattr(problem, 'get_init_inputs', list)\n"
        "    return inputs, problem.Model(*init())(*inputs)\n" + checks,
        folder,
    )
    assert right, shown


def test_kernelbench_files_stay_as_they_are_and_tell_their_commit(tmp_path: Path) -> None:
    path = forms.kernelbench(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("0123456789abcdef\n", encoding="utf-8")
    made, problem = read(str(path))
    assert made.source.startswith(forms.KERNELBENCH)
    assert '"level":1,"id":19,"file":"19_ReLU.py","commit":"0123456789ab"' in made.source
    assert not problem.train
    text = forms.KERNELBENCH.replace("self.s = s", "self.s = s; self.bn = nn.BatchNorm1d(64)")
    forms.kernelbench(tmp_path, "2_Norm", text)
    made, problem = read(f"{tmp_path}#2_Norm")
    assert problem.train
    forms.kernelbench(tmp_path, "3_Drop", text.replace("nn.BatchNorm1d(64)", "nn.Dropout(0.1)"))
    made, problem = read(f"{tmp_path / 'level1'}#3")
    assert not problem.train
    assert "dropout" in made.notes[0]
    with pytest.raises(BadUsage, match=r"has 3 problems: name one, such as .*#2_Norm"):
        import_one(str(tmp_path))


@pytest.mark.compiles
def test_batch_norms_are_found_under_their_own_names(tmp_path: Path) -> None:
    """They decide on the mode: `from torch.nn import BatchNorm1d` is another way to write them."""
    text = forms.KERNELBENCH.rstrip() + "\n\n\nfrom torch.nn import BatchNorm1d\n\nNORM = BatchNorm1d(4)\n"
    assert read(str(forms.kernelbench(tmp_path, text=text)))[1].train


def test_gpu_mode_folders_become_problems_without_being_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made, problem = read(str(forms.gpumode(tmp_path)))
    assert not (tmp_path / "was_run").exists()
    assert [(one.name, dict(one.sizes), one.held_out) for one in problem.workloads] == [
        ("rows=8, words=wide", {"rows": 8, "words": "wide"}, False),
        ("rows=16, words=wide", {"rows": 16, "words": "wide"}, False),
        ("rows=33, words=wide", {"rows": 33, "words": "wide"}, True),
    ]
    assert problem.error_budget == pytest.approx(0.0025)
    assert '"leaderboard":"shift_py","gpus":["H100"],"packed":true,"buffers":["out"]' in made.source
    assert "into a buffer" not in made.source
    answers(
        made,
        tmp_path,
        "(x, config, buffer), out = call(rows=4)\n"
        "assert config == {'shift': 2, 'more': None} and out is not buffer\n"
        "torch.testing.assert_close(out, x * 3 + 3)\n"
        "assert not torch.equal(problem.get_inputs()[0], problem.get_inputs()[0])\n",
    )


def test_aliases_of_yaml_are_not_multiplied(tmp_path: Path) -> None:
    """Six levels of nine aliases are a million words where they are written out."""
    levels = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join(9 * [f'*a{n - 1}'])}]" for n in range(1, 7)]
    task = forms.TASK.replace("gpus: [H100]", "gpus: [*a6, H100]")
    task = task.replace("config: {main: eval.py}", "config:\n  " + "\n  ".join(levels))
    made, _ = read(str(forms.gpumode(tmp_path, task=task)))
    assert '"gpus":["H100"]' in made.source


def test_the_last_benchmark_is_the_workload_where_it_alone_is_ranked(tmp_path: Path) -> None:
    made, problem = read(str(forms.gpumode(tmp_path, task=forms.TASK.replace("ranking_by: geom", ""))))
    assert [one.sizes["rows"] for one in problem.workloads if not one.held_out] == [16]
    assert any("'last'" in note for note in made.notes)


@pytest.mark.compiles
def test_definitions_of_flashinfer_trace_carry_their_stored_integers(tmp_path: Path) -> None:
    made, problem = read(str(forms.flashinfer(tmp_path)))
    assert [dict(one.sizes) for one in problem.workloads] == [{"case": "rows=3"}]
    told = json.loads(made.source.rpartition("# warpwright origin: ")[2])
    assert (told["inputs"], told["scalars"]) == (["x", "places", "s"], ["s"])
    assert told["workloads"]["rows=3"]["uuid"] == "u1"
    answers(
        made,
        tmp_path,
        "(x, places), out = call(case='rows=3')\n"
        "assert places.tolist() == [2, 0, 1] and places.dtype is torch.int32\n"
        "assert torch.equal(out, x[[2, 0, 1]] * 0.5)\n",
    )


def test_axes_with_constraints_are_taken_as_they_come(tmp_path: Path) -> None:
    changes = {"constraints": ["rows == 3"]}
    _, problem = read(str(forms.flashinfer(tmp_path, changes, {"places": {"type": "random"}})))
    assert [dict(one.sizes) for one in problem.workloads] == [{"case": "rows=3"}]


@pytest.mark.compiles
def test_sol_execbench_axes_follow_from_others(tmp_path: Path) -> None:
    made, problem = read(str(forms.sol(tmp_path)))
    assert [dict(one.sizes) for one in problem.workloads] == [{"rows": 2}, {"rows": 5}]
    assert problem.error_budget == pytest.approx(0.005)
    answers(made, tmp_path, "(x,), out = call(rows=5)\nassert x.shape == (5, 10) and torch.equal(out, 2 * x)\n")


@pytest.mark.compiles
def test_operators_of_backendbench_get_their_traced_arguments(tmp_path: Path) -> None:
    made, problem = read(f"{forms.backendbench(tmp_path)}#aten.add.Tensor")
    assert [one.weight for one in problem.workloads] == [3.0, 1.0]
    answers(
        made,
        tmp_path,
        "a, b = problem.get_inputs()\nassert torch.equal(problem.Model('0')(a, b), a + 2 * b)\n"
        "(c,) = problem.get_inputs('1')\nassert c.stride() == (1, 4)\n"
        "assert torch.equal(problem.Model('1')(c), c + 1.5)\n",
    )


def test_counts_in_json_lines_are_weights_as_tables_write_them(tmp_path: Path) -> None:
    """A column with gaps holds 5.0, and 5 may be text; a row without a count counts once."""
    path = tmp_path / "traces.jsonl"
    counts: tuple[Any, ...] = (5.0, "7", 3, None, float("nan"))
    rows = [{"op_name": "aten.relu.default", "args": f"((T([{n + 2}], f32),), {{}})", "count": count}
            for n, count in enumerate(counts)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [one.weight for one in read(str(path))[1].workloads] == [7.0, 5.0, 3.0, 1.0, 1.0]


UNCHECKED = forms.REFERENCE.partition("check_impl")[0]
CASES: list[tuple[Callable[..., Path], dict[str, Any], str]] = [
    (forms.kernelbench, {"text": "def get_inputs():\n    return []\n"}, "has no Model, get_init_inputs"),
    (forms.kernelbench, {"text": forms.KERNELBENCH.replace("x * self.s", "T.from_pretrained(x)")}, "downloads a model"),
    (forms.kernelbench, {"text": "def broken(:\n"}, "line 1"),
    (forms.gpumode, {"task": forms.TASK + "speed: 3\n"}, "unknown key 'speed'"),
    (forms.gpumode, {"task": "a: [\n"}, "not YAML"),
    (forms.gpumode, {"task": "!!python/object/apply:os.system [ls]"}, "not YAML"),
    (forms.gpumode, {"task": forms.TASK.replace("lang: py", "lang: cu")}, "written in 'cu'"),
    (forms.gpumode, {"task": forms.TASK + "multi_gpu: true\n"}, "several GPUs"),
    (forms.gpumode, {"task": forms.TASK.replace("rows: 8", "rows: [8]")}, "'rows' of benchmarks is a list"),
    (forms.gpumode, {"task": forms.TASK.replace("lang: py", "lang: [py]")}, "written in 'list'"),
    (forms.gpumode, {"task": forms.TASK.replace("gpus: [H100]", "gpus: H100")}, "gpus is a str in place of a list"),
    (forms.gpumode, {"task": forms.TASK.replace("../shared.py", "../../shared.py")}, "only in a git checkout"),
    (forms.gpumode, {"task": forms.TASK.replace("rows:", "lines:")}, "takes no 'lines'"),
    (forms.gpumode, {"reference": UNCHECKED}, "has no check_implementation"),
    (
        forms.gpumode,
        {"reference": UNCHECKED + "def check_implementation(data, output):\n    pass\n"},
        "another check than closeness",
    ),
    (forms.gpumode, {"reference": forms.REFERENCE.replace("    out[...]", "    data[2][...]")}, "writes into a part"),
    (forms.gpumode, {"reference": "import shared\n" + forms.REFERENCE}, "imports shared whole"),
    (forms.flashinfer, {"changes": {"axes": {"rows": {"type": "expr", "expression": "2"}}}}, "type 'expr'"),
    (forms.flashinfer, {"changes": {"reference": "def run(x, s, places):\n    return x\n"}}, "run takes x, s, places"),
    (forms.flashinfer, {"changes": {"reference": "def go(x):\n    return x\n"}}, "no top-level function run"),
    (
        forms.flashinfer,
        {"changes": {"outputs": {"y": {"shape": ["rows"], "dtype": "float4_e2m1"}}}},
        "y has the dtype 'float4_e2m1'",
    ),
    (forms.flashinfer, {"changes": {"op_type": None, "name": "gather_scale", "axes": 3}}, "axes is a map"),
    (forms.flashinfer, {"changes": {"name": "/x"}}, "has the name '/x'"),
    (forms.flashinfer, {"changes": {"outputs": {"y": {"shape": [{}], "dtype": "int8"}}}}, r"shape of y is \[{}\]"),
    (forms.sol, {"changes": {"custom_inputs_entrypoint": ["make"]}}, "no such function"),
    (forms.flashinfer, {"inputs": {"s": {"type": "random"}}}, "needs a value"),
    (
        forms.flashinfer,
        {"inputs": {"places": {"type": "safetensors", "path": "../../x", "tensor_key": "places"}}},
        "outside of the data set",
    ),
    (
        forms.flashinfer,
        {"inputs": {"places": {"type": "safetensors", "path": "blob/absent", "tensor_key": "places"}}},
        "git lfs pull",
    ),
    (
        forms.flashinfer,
        {"inputs": {"places": {"type": "safetensors", "path": "blob/places.safetensors", "tensor_key": "other"}}},
        "no tensor 'other'",
    ),
    (forms.sol, {"changes": {"axes": {**forms.SOL["axes"], "wide": {"type": "expr", "expression": "f(2)"}}}}, "arithm"),
    (forms.sol, {"changes": {"reference": "def run(x):\n    Model = 1\n    return x\n"}}, "defines Model"),
    (forms.sol, {"changes": {"custom_inputs_entrypoint": "make"}}, "no such function"),
    (forms.backendbench, {"text": "Operator: aten.add_.Tensor\ncnt: 1, ((T([2], f32),), {})\n"}, "functional overload"),
    (forms.backendbench, {"text": "Operator: aten.neg.default\ncnt: 1, ((__import__('os'),), {})\n"}, "__import__"),
    (forms.backendbench, {"text": "Operator: aten.neg.default\ncnt: 1, ((T([2], f32), x[0]), {})\n"}, "not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "changes", "words"), CASES, ids=lambda one: getattr(one, "__name__", None))
def test_an_unsupported_thing_is_refused_by_name(
    write: Callable[..., Path], changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(BadUsage, match=words):
        import_one(str(write(tmp_path, **changes)))


def test_the_command_writes_what_it_can_and_names_the_rest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    forms.kernelbench(tmp_path)
    folder = tmp_path / "out"
    assert commands.run(["import", str(tmp_path), "-o", str(folder)]) == ExitCode.OK
    assert capfd.readouterr().out.strip() == str(folder / "19_ReLU.py")
    forms.kernelbench(tmp_path, "20_Broken", "def broken(:\n")
    assert commands.run(["import", str(tmp_path), "-o", str(folder), "--json"]) == ExitCode.NOT_PASSED
    shown = capfd.readouterr()
    told = json.loads(shown.out)
    assert ([one["name"] for one in told["written"]], told["refused"][0]["name"]) == (["19_ReLU"], "20_Broken")
    assert "1 imported, 1 refused" in shown.err
    assert commands.run(["import", f"{tmp_path}#20", "-o", str(folder)]) == ExitCode.BAD_USAGE
    assert commands.run(["import", str(folder), "-o", str(folder)]) == ExitCode.BAD_USAGE
    assert "none of the forms" in capfd.readouterr().err
    assert commands.run(["import", str(tmp_path / "absent")]) == ExitCode.BAD_USAGE
    assert commands.run(["judge", "package.module:Name", "kernel.py", "--device", "cpu"]) == ExitCode.BAD_USAGE
    assert "--script run.py" in capfd.readouterr().err


def test_a_file_that_was_edited_is_not_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    forms.kernelbench(tmp_path)
    forms.kernelbench(tmp_path, "20_Other")
    folder = tmp_path / "out"
    words = ["import", str(tmp_path), "-o", str(folder)]
    assert [commands.run(words), commands.run(words)] == [ExitCode.OK, ExitCode.OK]
    edited = folder / "19_ReLU.py"
    edited.write_text("# mine\n", encoding="utf-8")
    capfd.readouterr()
    assert commands.run(words) == ExitCode.NOT_PASSED
    shown = capfd.readouterr()
    assert f"refused: 19_ReLU: {edited} is there and differs" in shown.err
    assert shown.out.strip() == str(folder / "20_Other.py")
    assert edited.read_text(encoding="utf-8") == "# mine\n"
    assert commands.run([*words, "--overwrite"]) == ExitCode.OK
    assert edited.read_text(encoding="utf-8") != "# mine\n"


def test_problems_of_equal_names_are_all_written_and_told_apart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A checkout of GPU MODE has older and newer folders of one problem, below `problems`."""
    for group in ("pmpp", "pmpp_v2"):
        (tmp_path / "problems" / group).mkdir(parents=True)
        forms.gpumode(tmp_path / "problems" / group)
    assert commands.run(["import", str(tmp_path), "-o", str(tmp_path / "out")]) == ExitCode.OK
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["pmpp_shift_py.py", "pmpp_v2_shift_py.py"]
    with pytest.raises(BadUsage, match=r"has 2 problems 'shift_py': name one, such as .*#pmpp_shift_py"):
        import_one(f"{tmp_path}#shift_py")
    made = import_one(f"{tmp_path}#pmpp_v2_shift_py")
    assert made is not None
    assert made.name == "pmpp_v2_shift_py"
    capfd.readouterr()


def test_a_number_that_several_levels_have_names_no_problem(tmp_path: Path) -> None:
    forms.kernelbench(tmp_path)
    forms.kernelbench(tmp_path, "19_Fused", level="level2")
    with pytest.raises(BadUsage, match="has 2 problems '19': name one"):
        import_one(f"{tmp_path}#19")
    made = import_one(f"{tmp_path}#19_Fused")
    assert made is not None


def test_names_that_make_one_file_are_refused_but_for_the_first(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("a-b", "a_b", "c"):
        forms.gpumode(tmp_path, name=name)
    assert commands.run(["import", str(tmp_path), "-o", str(tmp_path / "out")]) == ExitCode.NOT_PASSED
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a_b.py", "c.py"]
    assert "refused: a_b: another problem is a_b.py already" in capfd.readouterr().err


def test_a_folder_of_definitions_is_read_as_their_data_set_is(tmp_path: Path) -> None:
    path = forms.flashinfer(tmp_path)
    assert read(str(path.parent))[0].source == read(str(path))[0].source


def test_the_folder_in_which_one_stands_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rmsnorm").mkdir()
    (tmp_path / "rmsnorm" / "definition.json").write_text("[]")
    monkeypatch.chdir(tmp_path / "rmsnorm")
    with pytest.raises(BadUsage, match=r"^rmsnorm: rmsnorm/definition\.json"):
        import_one(".")


def test_optimize_posts_the_imported_problem_and_downloads_a_submission(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = forms.kernelbench(tmp_path)
    assert commands.run(["optimize", str(path), "--device", "cpu", "--server", api.url]) == ExitCode.OK
    assert api.bodies[0]["name"] == "19_ReLU"
    assert "# warpwright origin" in api.bodies[0]["source"]
    assert (tmp_path / "best_19_ReLU.py").exists()
    api.archive = b"# the submission\n"
    wanted = ["download", RUN_ID, "--format", "gpumode", "-o", "submission.py", "--server", api.url]
    assert commands.run(wanted) == ExitCode.OK
    assert (tmp_path / "submission.py").read_text(encoding="utf-8") == "# the submission\n"


def test_what_needs_no_import_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n", encoding="utf-8")
    for target, words in (
        (str(tmp_path / "mine.py"), "A problem file of Warpwright needs no import"),
        ("torch.nn:GELU", "warpwright capture --only torch.nn:GELU SCRIPT"),
    ):
        assert commands.run(["import", target, "-o", str(tmp_path)]) == ExitCode.BAD_USAGE
        assert words in capfd.readouterr().err


def test_a_plain_problem_file_is_no_import(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(forms.KERNELBENCH, encoding="utf-8")
    assert import_one(str(path)) is None
    with pytest.raises(BadUsage, match="none of the forms"):
        list(import_all(str(path)))
