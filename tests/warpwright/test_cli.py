"""The commands against a served API: exit codes, streams, JSON."""

from __future__ import annotations

import builtins
import io
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import warpwright
from tests.warpwright.fake_api import (
    RUN_ID,
    FakeApi,
    candidate_object,
    champion_object,
    event_object,
    ratio,
    run_object,
    run_summary,
)
from warpwright.__main__ import main
from warpwright.api import Client
from warpwright.api.decoding import decode
from warpwright.api.searching import RunSummary
from warpwright.cli import commands, tables
from warpwright.errors import ExitCode, Interrupted
from warpwright.stack.data_folder import DataFolder


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "addition.py"
    path.write_text('"""Adds."""\nclass Model: ...\n', encoding="utf-8")
    return path


def archive(folder: str, content: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for path, text in content.items():
            packed.writestr(f"{folder}/{path}", text)
    return written.getvalue()


def optimize(api: FakeApi, problem: Path, *more: str) -> int:
    output = str(problem.with_name("best.py"))
    return commands.run(["optimize", str(problem), "--device", "cpu", "--server", api.url, "-o", output, *more])


def test_optimize_with_a_champion_prints_the_table_and_saves_the_file(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert optimize(api, problem, "--seconds", "5", "--candidates", "7", "--usd", "1.5") == ExitCode.OK
    shown = capfd.readouterr()
    assert problem.with_name("best.py").read_text(encoding="utf-8") == "# the kernel\n"
    assert "against the fastest baseline: 1.50x, 95 % interval 1.40x to 1.60x" in shown.out
    assert "against eager: 2.00x, 95 % interval 1.90x to 2.10x" in shown.out
    for words in ("eager", "200 us", "150 us", "100 us", "PASSED 1", "BUILD_ERROR 1", "confirm 2.0 s", "best.py"):
        assert words in shown.out
    assert f"{api.url}/runs/{RUN_ID}" in shown.out
    assert "best so far" in shown.err
    assert "best so far" not in shown.out
    assert api.bodies[1]["budget"] == {"candidates": 7, "wall_s": 5.0, "usd": 1.5}


def test_optimize_says_that_no_worker_serves_its_device(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    optimize(api, problem)
    assert "no worker" not in capfd.readouterr().err
    api.workers = ["gpu.cuda", "build"]
    optimize(api, problem)
    said = " ".join(capfd.readouterr().err.split())
    assert f"no worker of {api.url} judges on cpu: the run waits for one, or for `warpwright bundle`" in said


def test_optimize_says_that_a_running_service_has_models_of_its_own(
    api: FakeApi, problem: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    optimize(api, problem)
    assert "knows no model" not in capfd.readouterr().err
    monkeypatch.setenv("WARPWRIGHT_MODELS", "[]")
    optimize(api, problem)
    said = " ".join(capfd.readouterr().err.split())
    assert f"{api.url} knows no model: WARPWRIGHT_MODELS counts where that service is started" in said


def test_the_run_is_shown_by_the_service_that_stays(
    api: FakeApi, problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WARPWRIGHT_SERVER", raising=False)
    folder = DataFolder(tmp_path / "data")
    words = ["optimize", str(problem), "--device", "cpu", "--data", str(folder.path), "-o", str(tmp_path / "best.py")]
    for stays in (True, False):
        with folder.locked():
            folder.publish(api.url, stays=stays, workers=("control", "propose", "build", "cpu"))
            assert commands.run(words) == ExitCode.OK
        shown = " ".join(capfd.readouterr().out.split())
        assert (f"dashboard: {api.url}/runs/{RUN_ID}" in shown) is stays
        assert (" serve --data " in shown) is not stays


@pytest.mark.parametrize("during", ["create_run", "list_workers", "follow"])
def test_an_interrupt_cancels_the_run_whenever_it_comes(
    api: FakeApi, problem: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], during: str
) -> None:
    """While its answer is on the way, too: the run may exist by then."""
    whole, times = getattr(Client, during), itertools.count()

    def interrupted(client: Client, *arguments: Any, **named: Any) -> Any:
        found = whole(client, *arguments, **named)
        if next(times) == 0:
            raise Interrupted
        return found

    monkeypatch.setattr(Client, during, interrupted)
    assert optimize(api, problem) == ExitCode.INTERRUPTED
    assert ("POST", f"/api/v1/runs/{RUN_ID}/cancel") in api.asked
    shown = " ".join(capfd.readouterr().err.split())
    assert f"{RUN_ID} is cancelled. Its best kernel: " in shown
    assert f" download {RUN_ID} --server {api.url}" in shown


def test_an_interrupt_while_the_command_is_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = builtins.__import__

    def interrupted(name: str, *more: Any) -> Any:
        if name == "warpwright.cli.commands":
            raise KeyboardInterrupt
        return whole(name, *more)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (ExitCode.INTERRUPTED, "Interrupted.\n")


def test_a_run_that_could_not_be_cancelled_is_told(
    api: FakeApi, problem: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def follow(client: Client, *arguments: Any, **named: Any) -> Any:
        raise Interrupted

    monkeypatch.setattr(Client, "follow", follow)
    api.refuse = {f"/api/v1/runs/{RUN_ID}/cancel": (409, {"title": "Conflict", "detail": "it is locked"})}
    assert optimize(api, problem) == ExitCode.INTERRUPTED
    assert "the run could not be cancelled: " in capfd.readouterr().err


def test_optimize_names_the_models_that_it_pays_before_it_does(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    prices = {"priced": True, "usd_per_million_input": 1.0, "usd_per_million_output": 10.0}
    one = {"name": "one", "model": "gpt-x", "context_tokens": 32768, "max_output_tokens": 16384, **prices}
    free = {**one, "name": "free", "usd_per_million_input": 0.0, "usd_per_million_output": 0.0}
    vague = {**one, "name": "vague", "priced": False, "usd_per_million_input": None}
    api.models = [one, free, vague]
    optimize(api, problem)
    assert (
        "this run asks one (gpt-x: 1 $ and 10 $ a million tokens in and out), free (gpt-x, free), vague (gpt-x, no "
        "price known), without a limit in dollars: --usd sets one"
    ) in " ".join(capfd.readouterr().err.split())
    assert api.asked.index(("GET", "/api/v1/models")) < api.asked.index(("POST", "/api/v1/runs"))
    optimize(api, problem, "--proposer", "one", "--usd", "0.5", "--in-flight", "6")
    assert api.bodies[-1]["config"] == {"proposers": ["one"], "in_flight": 6}
    assert "asks one (gpt-x: 1 $ and 10 $ a million tokens in and out), at most 0.5 $" in " ".join(
        capfd.readouterr().err.split()
    )
    optimize(api, problem, "--proposer", "synthesiser", "--proposer", "replay:x")
    assert "this run asks" not in capfd.readouterr().err


def test_optimize_json_is_one_document_on_stdout(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert optimize(api, problem, "--json") == ExitCode.OK
    result = json.loads(capfd.readouterr().out)
    assert result["improved"] is True
    assert result["candidates_by_verdict"] == {"BUILD_ERROR": 1, "PASSED": 1}
    assert result["evaluation"]["stage"] == "confirm"
    assert result["seconds_by_stage"] == {"build": 1.0, "timing": 2.0, "confirm": 2.0}
    assert result["file"].endswith("best.py")
    assert api.bodies[1]["budget"] == {"wall_s": 120.0}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"champion_id": None, "end_reason": "no_improvement"}, ExitCode.NO_IMPROVEMENT, "No kernel was confirmed"),
        ({"champion_id": None, "end_reason": "budget"}, ExitCode.NO_IMPROVEMENT, "budget ended"),
        ({"champion_id": None, "best_id": None, "end_reason": "problem_refused"}, ExitCode.BAD_USAGE, "refused"),
        ({"champion_id": None, "best_id": None, "end_reason": "no_proposer"}, ExitCode.BAD_USAGE, "No proposer"),
        ({"champion_id": None, "status": "failed", "end_reason": "internal_error"}, ExitCode.INTERNAL, "run ended"),
        ({"champion_id": None, "status": "cancelled", "end_reason": "cancelled"}, ExitCode.NOT_PASSED, "cancelled"),
    ],
)
def test_optimize_without_a_champion(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], code: ExitCode, words: str
) -> None:
    api.run = run_object(message="", **changes)
    assert optimize(api, problem) == code
    assert words in capfd.readouterr().out
    api.run = run_object(message="torch.compile is the advice.", **changes)
    assert optimize(api, problem) == code
    assert "torch.compile is the advice." in capfd.readouterr().out
    assert problem.with_name("best.py").exists() == (api.run["best_id"] is not None)


@pytest.mark.parametrize("named", [None, "cand_of_an_earlier_run"])
def test_an_unbeaten_champion_of_an_earlier_run_is_saved(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str], named: str | None
) -> None:
    message = "The budget is used up. The champion of an earlier run is still the fastest: it is 1.50x as fast."
    api.run = run_object(champion_id=named, best_id=None, message=message, device_kind="cpu")
    api.leaderboard = [champion_object(device_kind="cuda", candidate_id="cand_9"), champion_object()]
    assert optimize(api, problem) == ExitCode.OK
    shown = capfd.readouterr()
    assert "still the fastest" in shown.out
    assert "against the fastest baseline: 1.50x" in shown.out
    assert "not proved faster" not in shown.err
    assert problem.with_name("best.py").read_text(encoding="utf-8") == "# the champion on cpu\n"


def test_a_speedup_over_a_baseline_that_was_overtaken_is_called_an_estimate(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    api.run = run_object(champion_id=None, end_reason="no_improvement", message="Nothing was confirmed.")
    api.candidates = [candidate_object(2, "PASSED", confirmed=False, outdated=True, speedup=ratio(1.1))]
    api.stages = ["timing"]
    assert optimize(api, problem) == ExitCode.NO_IMPROVEMENT
    shown = capfd.readouterr()
    lines = shown.out.splitlines()
    assert "against compile, no longer the fastest baseline: 1.50x, 95 % interval 1.40x to 1.60x" in lines
    assert (
        "against the fastest baseline: about 1.10x, 95 % interval 1.00x to 1.20x; an estimate, since that one compiled "
        "after this timing"
    ) in lines
    assert "against the fastest then" in shown.out
    assert "against the fastest baseline: 1.50x" not in shown.out
    assert "It was timed before the fastest baseline had compiled" in shown.err
    assert commands.run(["candidates", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert "estimated" in capfd.readouterr().out


def test_the_list_of_runs_tells_estimates(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.runs = [run_summary(1, confirmed=False, outdated=True)]
    assert commands.run(["runs", "--server", api.url]) == ExitCode.OK
    assert "estimated" in capfd.readouterr().out


def test_seeds_and_proposers_travel_in_the_config(api: FakeApi, problem: Path) -> None:
    seed = problem.with_name("seed.py")
    seed.write_text("class ModelNew: ...\n", encoding="utf-8")
    optimize(api, problem, "--seed", str(seed), "--proposer", "synthesiser", "--proposer", "replay:x")
    assert api.bodies[1]["config"] == {
        "proposers": ["synthesiser", "replay:x"],
        "seed_sources": ["class ModelNew: ...\n"],
    }


def test_optimize_explains_an_unreadable_file(api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    latin = tmp_path / "latin.py"
    latin.write_bytes(b"# one\n# caf\xe9\n")
    huge = tmp_path / "huge.py"
    huge.write_bytes(b"#" * (2**20 + 1))
    for path, words in ((latin, "not UTF-8 (line 2"), (huge, "1048577 bytes"), (tmp_path / "none.py", "No such file")):
        assert optimize(api, path) == ExitCode.BAD_USAGE
        assert words in " ".join(capfd.readouterr().err.split())
    assert not api.asked


def test_a_refused_problem_ends_with_2_and_the_reason(
    api: FakeApi, problem: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    api.refuse["/api/v1/problems"] = (422, {"detail": "line 2: Model needs a forward method"})
    assert optimize(api, problem) == ExitCode.BAD_USAGE
    assert "line 2: Model needs a forward method" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["optimize"],
        ["optimize", "p.py", "--nonsense"],
        ["optimize", "p.py", "--domain", "everything"],
        ["optimize", __file__, "--size", "rows"],
        ["keys", "create", "nightly", "--scope", "everything"],
        ["download", "cand_1"],
        ["download", "run_1", "--format", "exe"],
        ["serve", "--port", "99999"],
        ["keys", "create", "nightly", "--days", "-3"],
        ["capture", "--seconds", "-1", __file__],
    ],
)
def test_bad_usage_ends_with_2(arguments: list[str]) -> None:
    assert commands.run(arguments) == ExitCode.BAD_USAGE


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--threads", "many"], "--threads takes numbers from 1 to"),
        (["--threads", "1,9999"], "--threads takes numbers from 1 to"),
        (["--script", "run.py"], "is a file: leave it out"),
        (["-o", "."], "is a folder; name another with -o"),
        (["-o", f"{__file__}/best.py"], "is a file; name another with -o"),
        (["--server", "example.com"], "begins with http:// or https://"),
        (["--seconds", "inf"], "--seconds must be a number above 0"),
        (["--seed", os.devnull], "/dev/null is empty"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    problem: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    data = ["--device", "cpu", "--data", str(tmp_path / "data")]
    assert commands.run(["optimize", str(problem), *data, *more]) == ExitCode.BAD_USAGE
    assert words in capfd.readouterr().err
    assert not (tmp_path / "data").exists()


def test_the_list_of_commands_is_whole_in_80_columns(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["--help"]) == ExitCode.OK
    assert "..." not in capfd.readouterr().out.partition("Commands:")[2]


def test_budgets_must_be_positive(api: FakeApi, problem: Path) -> None:
    assert optimize(api, problem, "--seconds", "0") == ExitCode.BAD_USAGE
    assert optimize(api, problem, "--seconds", "nan") == ExitCode.BAD_USAGE


def test_an_unreachable_service_ends_with_3(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["runs", "--server", "http://127.0.0.1:9"]) == ExitCode.INTERNAL
    assert "no service answers" in capfd.readouterr().err


def test_lists_are_tables_or_json(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.candidates.append({**candidate_object(3, "PASSED"), "verdict": None, "speedup": None, "reason": ""})
    for command in (["runs"], ["candidates", RUN_ID], ["keys", "list"]):
        assert commands.run([*command, "--server", api.url]) == ExitCode.OK
        table = capfd.readouterr().out
        assert commands.run([*command, "--server", api.url, "--json"]) == ExitCode.OK
        rows = json.loads(capfd.readouterr().out)
        assert all(row["id"] in table for row in rows)


def test_candidates_show_the_way_in_which_a_model_wrote_them(
    api: FakeApi, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    api.candidates = [candidate_object(3, "PASSED", proposer="gpt", way="slots")]
    assert commands.run(["candidates", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert "gpt/create/slots" in capfd.readouterr().out


def test_the_leaderboard_is_a_table_or_json(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["leaderboard", "--server", api.url]) == ExitCode.OK
    assert "no champions yet" in capfd.readouterr().err
    api.leaderboard = [champion_object()]
    assert commands.run(["leaderboard", "--server", api.url]) == ExitCode.OK
    assert "1.50x (1.40x to 1.60x)" in capfd.readouterr().out
    assert commands.run(["leaderboard", "--server", api.url, "--json"]) == ExitCode.OK
    assert json.loads(capfd.readouterr().out)[0]["against_fastest"]["interval"]["low"] == pytest.approx(1.4)


def test_a_key_is_made_shown_once_and_revoked(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    named = ["keys", "create", "nightly", "--scope", "read", "--days", "9", "--server", api.url]
    assert commands.run(named) == ExitCode.OK
    shown = capfd.readouterr()
    assert shown.out == "wwk_secret\n"
    assert "key_1" in shown.err
    assert api.bodies == [{"name": "nightly", "scope": "read", "expires_in_days": 9}]
    assert commands.run(["keys", "list", "--server", api.url]) == ExitCode.OK
    assert "secret" not in capfd.readouterr().out
    assert commands.run(["keys", "revoke", "key_1", "--server", api.url]) == ExitCode.OK
    assert "key_1 (nightly) is revoked" in capfd.readouterr().out
    assert ("DELETE", "/api/v1/keys/key_1") in api.asked


def test_events_are_lines_or_json_lines(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--follow"]):
        assert commands.run(["events", RUN_ID, "--server", api.url, "--json", *more]) == ExitCode.OK
        lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    assert commands.run(["events", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert "champion.promoted" in capfd.readouterr().out


def test_cancel_and_download(api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["cancel", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert "run_1 is cancelled" in capfd.readouterr().out
    assert commands.run(["download", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert capfd.readouterr().out == "# the kernel\n"
    path = tmp_path / "deep" / "kernel.py"
    assert commands.run(["download", RUN_ID, "--server", api.url, "-o", str(path)]) == ExitCode.OK
    assert path.read_text(encoding="utf-8") == "# the kernel\n"


@pytest.mark.parametrize("form", ["package", "hf-kernel"])
def test_a_package_is_unpacked(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def download(*more: str) -> int:
        return commands.run(["download", RUN_ID, "--format", form, "--server", api.url, *more])

    monkeypatch.chdir(tmp_path)
    api.archive = archive("scale_cpu", {"src/kernel.py": "# the kernel", "README.md": "read me"})
    assert download() == ExitCode.OK
    assert (tmp_path / "scale_cpu" / "src" / "kernel.py").read_text(encoding="utf-8") == "# the kernel"
    assert str(tmp_path / "scale_cpu") in capfd.readouterr().out
    assert download() == ExitCode.BAD_USAGE
    assert "exists; name a new folder with -o" in capfd.readouterr().err
    assert download("-o", "other", "--json") == ExitCode.OK
    assert json.loads(capfd.readouterr().out) == {"id": RUN_ID, "file": str(tmp_path / "other")}
    assert download("-o", "kept.zip") == ExitCode.OK
    assert (tmp_path / "kept.zip").read_bytes() == api.archive
    for bad in (b"no archive", archive("..", {"kernel.py": ""}), archive("a", {"../../b": ""})):
        api.archive = bad
        assert download("-o", "bad") == ExitCode.BAD_USAGE
        assert "the server sent" in capfd.readouterr().err
    assert not (tmp_path / "bad").exists()


def test_a_whole_run_is_taken_home(api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.zip"
    assert commands.run(["download", RUN_ID, "--format", "zip", "--server", api.url, "-o", str(path)]) == ExitCode.OK
    assert path.read_bytes() == b"PK, and so on"
    assert str(path) in capfd.readouterr().out
    assert commands.run(["download", "prob_1", "--format", "zip", "--server", api.url]) == ExitCode.BAD_USAGE


def test_an_unknown_run_ends_with_2(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["candidates", "run_none", "--server", api.url]) == ExitCode.BAD_USAGE
    assert "no such thing" in capfd.readouterr().err


def test_the_list_of_runs_has_names_and_marks_what_is_not_confirmed(
    api: FakeApi, capfd: pytest.CaptureFixture[str]
) -> None:
    api.runs = [run_summary(1), run_summary(2, confirmed=False), run_summary(3, speedup=None, confirmed=False)]
    assert commands.run(["runs", "--server", api.url]) == ExitCode.OK
    first, second, third = capfd.readouterr().out.splitlines()[1:]
    assert "addition" in first
    assert " 1.50x (1.40x to 1.60x)" in first
    assert " ~1.50x" in second
    assert "1.50x" not in third


def test_a_table_fits_80_columns_and_keeps_its_ids_whole() -> None:
    run = run_summary(1, id="run_01m8cyjrj2000vyd8cbgqph3df", problem_name="a problem with a long name")
    screen = Console(width=80, file=io.StringIO())
    screen.print(tables.runs([decode(RunSummary, run)], screen.width))
    assert isinstance(screen.file, io.StringIO)
    head, first, *_ = screen.file.getvalue().splitlines()
    assert head.split() == ["run", "problem", "status", "against", "fastest"]
    assert first.startswith(f"{run['id']}  ")
    wide = tables.runs([decode(RunSummary, run)], 200)
    assert len(wide.columns) == 8


def test_an_unjudged_candidate_of_an_ended_run_is_told_so(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.candidates = [{**candidate_object(3, "PASSED"), "verdict": None, "speedup": None, "reason": ""}]
    for status, words in (("finished", "not judged"), ("running", "in progress")):
        api.run["status"] = status
        assert commands.run(["candidates", RUN_ID, "--server", api.url]) == ExitCode.OK
        assert words in capfd.readouterr().out


def test_a_full_disk_is_told_without_a_traceback(api: FakeApi) -> None:
    command = [sys.executable, "-m", "warpwright", "events", RUN_ID, "--json", "--server", api.url]
    with open("/dev/full", "w", encoding="utf-8") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == ExitCode.INTERNAL
    assert ran.stderr == "warpwright: No space left on device: make room and run the command again\n"


def test_an_event_is_one_whole_line(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    reason = "line 3:\n" + "no such thing, " * 40
    api.events = [event_object(1, "evaluation.settled", reason=reason)]
    assert commands.run(["events", RUN_ID, "--server", api.url]) == ExitCode.OK
    assert capfd.readouterr().out.splitlines() == [
        f"    1  03:04:05  evaluation.settled    reason={' '.join(reason.split())}"
    ]
    assert commands.run(["events", RUN_ID, "--server", api.url, "--json"]) == ExitCode.OK
    (line,) = capfd.readouterr().out.splitlines()
    assert json.loads(line)["data"] == {"reason": reason}


def test_the_version_is_the_packages(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["--version"]) == ExitCode.OK
    assert capfd.readouterr().out == f"warpwright {warpwright.__version__}\n"


def test_a_shell_gets_its_completion() -> None:
    asked = {"_WARPWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "warpwright opt", "COMP_CWORD": "1"}
    script = "from warpwright.cli.commands import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = ['warpwright']; {script}"],
        env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["optimize"]


def test_the_skill_is_written_and_replaced_but_nothing_else_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert commands.run(["skill", str(tmp_path)]) == ExitCode.OK
    written = Path(capfd.readouterr().out.strip())
    text = (written / "SKILL.md").read_text(encoding="utf-8")
    assert text.startswith("---\nname: warpwright\n")
    for link in re.findall(r"\]\((references/[^)#]+)", text):
        assert (written / link).is_file()
    (written / "SKILL.md").write_text("old", encoding="utf-8")
    assert commands.run(["skill", str(tmp_path), "--json"]) == ExitCode.OK
    assert json.loads(capfd.readouterr().out) == {"folder": str(written)}
    assert (written / "SKILL.md").read_text(encoding="utf-8") == text
    own = tmp_path / "other" / "warpwright"
    own.mkdir(parents=True)
    (own / "notes.md").touch()
    assert commands.run(["skill", str(own.parent)]) == ExitCode.BAD_USAGE
    assert "name another folder" in capfd.readouterr().err


def test_mcp_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert commands.run(["mcp", "--server", "http://127.0.0.1:9"]) == ExitCode.INTERNAL
    assert "pip install 'mcp" in capfd.readouterr().err
