"""`warpwright bundle` and `collect` against a server of canned answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.warpwright.fake_api import FakeApi
from warpwright.cli import commands
from warpwright.errors import ExitCode

HEADER = '{"sha256": "h", "value": {"bundle_id": "bndl_1", "tasks": 1}}'
TASK = '{"sha256": "h", "value": {"job_id": "job_1", "lease": "l"}}'
ANSWER = '{"sha256": "h", "value": {"bundle_id": "bndl_1", "job_id": "job_1", "lease": "l"}}'


def run(api: FakeApi, *words: str) -> int:
    return commands.run([*words, "--server", api.url])


def test_a_bundle_is_saved_with_the_command_for_the_other_machine(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    api.bundle = f"{HEADER}\n{TASK}\n"
    path = tmp_path / "one.bundle"
    assert run(api, "bundle", "-o", str(path), "--limit", "9", "--hours", "2") == ExitCode.OK
    assert path.read_text(encoding="utf-8") == api.bundle
    assert api.bodies[-1] == {"device": "cuda", "limit": 9, "hours": 2.0}
    shown = capfd.readouterr()
    assert "1 task for a cuda device, until tomorrow" in " ".join(shown.out.split())
    assert "python -m evaluator work one.bundle --device cuda:0" in " ".join(shown.err.split())
    assert run(api, "bundle", "-o", str(path), "--json") == ExitCode.OK
    assert json.loads(capfd.readouterr().out)["tasks"] == 1


def test_without_waiting_work_it_says_so(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.refuse["/api/v1/bundles"] = (409, {"detail": "No work waits for a cuda device."})
    assert run(api, "bundle") == ExitCode.NOT_PASSED
    assert "No work waits" in capfd.readouterr().err
    api.refuse["/api/v1/bundles"] = (403, {"detail": "The scope operator is needed."})
    assert run(api, "bundle") not in (ExitCode.OK, ExitCode.NOT_PASSED)
    assert run(api, "bundle", "--device", "tpu") == ExitCode.BAD_USAGE


def test_every_line_is_settled_and_counted(api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answers, bundle = tmp_path / "one.answers", tmp_path / "one.bundle"
    answers.write_text(f"\n{ANSWER}\n\n{ANSWER}\n{ANSWER}\n{ANSWER[:30]}", encoding="utf-8")
    bundle.write_text(f"{HEADER}\n{TASK}\n", encoding="utf-8")
    api.outcomes = ["settled", "gone", "refused"]
    assert run(api, "collect", str(answers), str(bundle), "--release") == ExitCode.OK
    shown = capfd.readouterr()
    assert "1 settled, 1 gone, 1 refused, 1 cut or changed lines, 3 given back" in " ".join(shown.out.split())
    assert "job_1: gone (because)" in shown.err
    api.outcomes = ["returned"] * 3
    assert run(api, "collect", str(answers), "--json") == ExitCode.OK
    told = json.loads(capfd.readouterr().out)
    assert (told["outcomes"], told["broken_lines"], told["released"]) == ({"returned": 3}, 1, 0)


def test_a_line_that_the_service_refuses_does_not_stop_the_others(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "one.answers"
    answers.write_text(f"{ANSWER}\n{ANSWER}\n", encoding="utf-8")
    api.refuse["/api/v1/bundles/bndl_1/answers"] = (422, {"detail": "The line was changed."})
    assert run(api, "collect", str(answers)) == ExitCode.OK
    shown = capfd.readouterr()
    assert "2 refused" in shown.out
    assert "The line was changed." in shown.err


@pytest.mark.parametrize("text", ["", "\n \n", f"{TASK}\n", "import torch\nx = 1\n", ANSWER[:30]])
def test_a_file_without_an_answer_is_no_success(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    other = tmp_path / "one.answers"
    other.write_text(text, encoding="utf-8")
    for words in ((), ("--release",), ("--json",)):
        assert run(api, "collect", str(other), *words) == ExitCode.NOT_PASSED
        shown = capfd.readouterr()
        assert "no line of these files is an answer" in shown.err
        assert shown.out == ""


def test_a_bundle_holds_no_answer_but_is_given_back(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "one.bundle"
    bundle.write_text(f"{HEADER}\n{TASK}\n", encoding="utf-8")
    assert run(api, "collect", str(bundle)) == ExitCode.NOT_PASSED
    assert "with --release" in capfd.readouterr().err
    assert run(api, "collect", str(bundle), "--release") == ExitCode.OK
    assert "3 given back" in capfd.readouterr().out


def test_hours_are_a_number_above_0(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    for hours in ("nan", "0", "inf"):
        assert run(api, "bundle", "--hours", hours) == ExitCode.BAD_USAGE
        assert "--hours must be a number above 0" in capfd.readouterr().err


def test_a_file_that_is_not_there_is_named(api: FakeApi, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(api, "collect", "nowhere.answers") == ExitCode.BAD_USAGE
    assert "nowhere.answers" in capfd.readouterr().err
