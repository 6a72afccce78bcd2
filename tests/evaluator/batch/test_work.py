"""The work of a bundle without a service: written answer by answer, taken up again, faults of the machine told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.batch.lines import Answer, Header, Task, TaskKind, answered, write_line
from evaluator.batch.served import JudgeFault, ServedJudge
from evaluator.batch.work import work
from evaluator.schema import to_json
from evaluator.types import Candidate, DeviceKind, Language, Verdict
from tests.db.world import DEVICE, ENVIRONMENT, admission, baseline, failed, passed, problem

# Answers as a judge, in order; "die" ends it, "hang" says nothing, a text fails, "meet" waits for so many judges,
# "stop" interrupts who asked.
JUDGE = """
import json, os, pathlib, signal, sys, time
for line in sys.stdin:
    request = json.loads(line)
    script = json.load(open(sys.argv[1]))
    words = [request["op"], *(word for word in ("quick", "whole") if request.get(word))]
    with open(sys.argv[2], "a") as log: log.write("-".join(words) + "\\n")
    said = script[request["op"]]
    if said == "die": sys.exit(1)
    if said == "hang": continue
    if said == "stop": os.kill(os.getppid(), signal.SIGINT); continue
    if "meet" in said:
        here = pathlib.Path(sys.argv[2] + ".here")
        here.mkdir(exist_ok=True)
        (here / str(os.getpid())).touch()
        while len(list(here.iterdir())) < said["meet"]: time.sleep(0.01)
        said = said["result"]
    ok = not isinstance(said, str)
    print(json.dumps({"id": request["id"], "ok": ok, "result" if ok else "error": said}), flush=True)
"""
PROBLEM = problem()
CANDIDATE = Candidate(source="speed=1.5", language=Language.CPP)
RUNS = passed(PROBLEM, CANDIDATE, 1.5)
BUILD = {"candidate_hash": CANDIDATE.hash, "signature": "s"}
DESCRIBED = {"device": to_json(DEVICE), "environment": to_json(ENVIRONMENT), "isolation": []}
SCRIPT = {
    "describe": DESCRIBED, "admit": to_json(admission(PROBLEM)), "baseline": to_json(baseline(PROBLEM)),
    "build": BUILD, "judge": to_json(RUNS), "confirm": to_json(RUNS),
}  # fmt: skip


class Site:
    """A machine with a bundle, and a judge that answers from a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bundle, self.answers = folder / "b.bundle", folder / "b.answers"
        (folder / "judge.py").write_text(JUDGE, encoding="utf-8")
        self.log = folder / "log"
        self.log.touch()
        self.script(**SCRIPT)

    def script(self, **changes: object) -> None:
        (self.folder / "script.json").write_text(json.dumps({**SCRIPT, **changes}), encoding="utf-8")

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(self.folder / "judge.py"), str(self.folder / "script.json"), str(self.log)]

    def write(self, *tasks: Task, kind: DeviceKind = DeviceKind.CPU) -> None:
        header = Header(bundle_id="bndl_1", device_kind=kind, tasks=len(tasks), created_at="", expires_at="")
        self.bundle.write_text("\n".join(map(write_line, (header, *tasks))), encoding="utf-8")

    def work(self, seconds: float | None = None, judges: int = 1) -> int:
        return work(self.bundle, self.answers, "cpu", seconds=seconds, judges=judges, command=self.command)

    def said(self) -> list[Answer]:
        return list(answered(self.answers.read_text(encoding="utf-8").split("\n")))

    def asked(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").split()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def task(number: int, kind: TaskKind = TaskKind.BUILD) -> Task:
    timed = kind in (TaskKind.BUILD, TaskKind.JUDGE, TaskKind.CONFIRM)
    return Task(
        job_id=f"job_{number}",
        lease=f"lease_{number}",
        kind=kind,
        problem=PROBLEM,
        candidate=CANDIDATE if timed else None,
        baseline=baseline(PROBLEM) if timed else None,
    )


def test_each_step_is_done_and_the_one_after_it(site: Site) -> None:
    site.write(*(task(number, kind) for number, kind in enumerate(TaskKind)))
    assert site.work() == 0
    assert site.asked() == [
        "describe", "admit", "baseline-whole", "baseline-whole", "build", "judge", "judge", "confirm",
    ]  # fmt: skip
    parts = ("admission", "baseline", "build", "evaluation")
    assert [[name for name in parts if getattr(one, name) is not None] for one in site.said()] == [
        ["admission", "baseline"], ["baseline"], ["build", "evaluation"], ["evaluation"], ["evaluation"],
    ]  # fmt: skip
    assert {(one.bundle_id, one.job_id, one.lease) for one in site.said()} == {
        ("bndl_1", f"job_{number}", f"lease_{number}") for number in range(5)
    }


def test_a_quick_judgement_knows_the_best_so_far(site: Site) -> None:
    site.write(replace(task(0), quick=True, best={"small": 1.5}))
    assert site.work() == 0
    assert site.asked() == ["describe", "build", "judge-quick"]


def test_what_the_build_refuses_is_not_judged(site: Site) -> None:
    site.script(build={**BUILD, "evaluation": to_json(failed(PROBLEM, CANDIDATE, Verdict.BUILD_ERROR))})
    site.write(task(0))
    assert site.work() == 0
    assert site.asked() == ["describe", "build"]


def test_a_job_that_was_ended_goes_on_where_it_ended(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(task(0, TaskKind.JUDGE), task(1, TaskKind.JUDGE))
    assert site.work(seconds=0.0) == 1
    assert site.work() == 0
    whole = site.answers.read_text(encoding="utf-8")
    site.answers.write_text(whole[:-50], encoding="utf-8")
    assert site.work() == 0
    assert site.asked().count("judge") == 3
    assert sorted(one.job_id for one in site.said()) == ["job_0", "job_1"]
    assert site.work() == 0
    assert "tasks answered before: 2, now: 0, left: 0" in capsys.readouterr().out


@pytest.mark.parametrize("judges", [1, 2])
def test_an_interrupt_ends_the_work_and_loses_the_task_in_progress_alone(
    site: Site, capsys: pytest.CaptureFixture[str], judges: int
) -> None:
    site.write(task(1, TaskKind.JUDGE), task(2, TaskKind.ADMIT), task(3, TaskKind.JUDGE))
    site.script(admit="stop", judge="hang" if judges > 1 else SCRIPT["judge"])
    assert site.work(judges=judges) == 130
    assert "keeps what is answered; the same command does the rest" in capsys.readouterr().err
    assert [one.job_id for one in site.said()] == ["job_1"] * (judges == 1)
    site.script()
    assert site.work(judges=judges) == 0
    assert {one.job_id for one in site.said() if not one.error} == {"job_1", "job_2", "job_3"}


def test_a_cut_bundle_is_done_as_far_as_it_goes(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(task(0, TaskKind.JUDGE), task(1, TaskKind.JUDGE))
    site.bundle.write_text(site.bundle.read_text(encoding="utf-8")[:-80], encoding="utf-8")
    assert site.work() == 1
    assert [one.job_id for one in site.said()] == ["job_0"]
    assert "cut off" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"environment": to_json(replace(ENVIRONMENT, driver="999.1"))}, "driver None, here 999.1"),
        ({"device": to_json(replace(DEVICE, name="Other CPU"))}, "timed on Test CPU, and this is Other CPU"),
    ],
)
def test_a_machine_that_differs_from_the_baselines_does_nothing(
    site: Site, machine: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site.script(describe={**DESCRIBED, **machine})
    site.write(task(0), task(1, TaskKind.ADMIT))
    assert site.work() == 1
    assert [one.job_id for one in site.said()] == ["job_1"]
    assert words in capsys.readouterr().err


def test_a_fault_of_the_machine_is_told_and_three_in_a_row_end_the_work(site: Site) -> None:
    site.write(*(task(number, TaskKind.JUDGE) for number in range(5)))
    site.script(judge="no memory")
    assert site.work() == 3
    assert [one.error for one in site.said()] == ["judge: no memory"] * 3
    site.script(judge="die")
    assert site.work() == 0, "two are left, and each is answered by its fault"
    assert "ended without an answer" in site.said()[-1].error


def test_a_device_that_cannot_be_used_is_told_before_anything_is_written(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    site.write(task(0))
    site.script(describe="die")
    assert site.work() == 3
    assert "describe: the judge ended without an answer (status 1); it says why above" in capfd.readouterr().err
    assert not site.answers.exists()


def test_answers_that_cannot_be_written_are_told(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(task(0))
    site.answers = site.folder / "absent" / "b.answers"
    assert site.work() == 2
    assert f"error: {site.answers}: No such file or directory" in capsys.readouterr().err


def test_several_judges_share_the_tasks(site: Site) -> None:
    site.write(*(task(number, TaskKind.JUDGE) for number in range(6)))
    site.script(judge={"meet": 2, "result": to_json(RUNS)})
    assert site.work(judges=2) == 0
    assert sorted(one.job_id for one in site.said()) == [f"job_{number}" for number in range(6)]
    assert {one.error for one in site.said()} == {""}
    site.write(task(9, TaskKind.JUDGE))
    site.script()
    assert site.work(judges=8) == 0, "no more judges start than there are tasks"


def test_what_fails_beside_others_is_done_again_alone(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(*(task(number, TaskKind.JUDGE) for number in range(5)))
    site.script(judge="no memory")
    assert site.work(judges=2) == 3
    assert len(site.said()) == 3
    assert site.asked().count("judge") == 8, "five beside each other, three alone"
    assert "again at the end: judge: no memory" in capsys.readouterr().err


def test_confirmations_are_done_alone_at_the_end(site: Site) -> None:
    site.write(task(0, TaskKind.CONFIRM), task(1, TaskKind.JUDGE), task(2, TaskKind.CONFIRM))
    assert site.work(judges=3) == 0
    assert [word for word in site.asked() if word != "describe"] == ["judge", "confirm", "confirm"]


def test_a_judge_that_lacks_memory_beside_others_is_asked_again_alone(site: Site) -> None:
    site.write(task(0, TaskKind.JUDGE), task(1, TaskKind.JUDGE))
    site.script(judge=to_json(failed(PROBLEM, CANDIDATE, Verdict.INTERNAL_ERROR)))
    assert site.work(judges=2) == 0
    assert site.asked().count("judge") == 4
    assert len(site.said()) == 2, "alone it is an answer: the service tries it again"


def test_a_fault_in_the_next_step_leaves_only_that_step(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(task(0, TaskKind.ADMIT), task(1))
    site.script(baseline="no memory", judge="no memory")
    assert site.work() == 0
    admitted, built = site.said()
    assert (admitted.error, built.error) == ("", "")
    assert admitted.admission is not None
    assert built.build is not None
    assert (admitted.baseline, built.evaluation) == (None, None)
    assert "the step after it: judge: no memory" in capsys.readouterr().err


def test_a_bundle_for_another_kind_of_device_and_no_bundle_are_refused(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write(task(0, TaskKind.ADMIT), kind=DeviceKind.CUDA)
    assert site.work() == 3
    assert "the bundle is for cuda, and this device is cpu" in capsys.readouterr().err
    assert not site.answers.exists(), "an empty file would be taken for work that was done"
    site.bundle.write_text("hello", encoding="utf-8")
    assert site.work() == 2
    site.bundle.unlink()
    assert site.work() == 2


def test_a_judge_that_hangs_is_replaced(site: Site) -> None:
    site.script(judge="hang")
    judge = ServedJudge("cpu", site.command)
    try:
        with pytest.raises(JudgeFault, match="in time"):
            judge.request("judge", deadline_s=0.3)
        assert judge.request("describe", deadline_s=60.0) == DESCRIBED
    finally:
        judge.close()


def test_a_judge_that_does_not_start_is_a_fault(tmp_path: Path) -> None:
    missing: Sequence[str] = (str(tmp_path / "nothing"),)
    judge = ServedJudge("cpu", missing)
    with pytest.raises(JudgeFault):
        judge.request("ping", deadline_s=1.0)
