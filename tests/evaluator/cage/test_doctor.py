"""The doctor reports what works, and advises on what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from evaluator import doctor
from evaluator.schema import from_json, to_json

EXAMINED = """
import json, sys
from evaluator import doctor, schema
report = doctor.examine()
print(json.dumps({"report": schema.to_json(report), "torch": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def examined() -> dict[str, Any]:
    """Return the findings of a separate process, and if it has loaded torch."""
    done = subprocess.run([sys.executable, "-c", EXAMINED], capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def report(examined: dict[str, Any]) -> doctor.Report:
    return from_json(doctor.Report, examined["report"])


def test_this_machine_can_judge(report: doctor.Report) -> None:
    assert report.can_judge_cpu
    assert report.finding("cage").ok == (report.isolation == ())
    assert report.finding("torch").found[0].isdigit()
    with pytest.raises(KeyError):
        report.finding("moon")


def test_missing_parts_come_with_advice(report: doctor.Report) -> None:
    for finding in report.findings:
        assert finding.found
        assert finding.ok or finding.advice


def test_the_report_reads_as_text_and_as_json(report: doctor.Report) -> None:
    text = doctor.render(report)
    for finding in report.findings:
        assert finding.name in text
    assert from_json(doctor.Report, to_json(report)) == report


def test_without_bubblewrap_the_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.cage.bwrap.find_bwrap", lambda: None)
    finding = doctor.examine().finding("bubblewrap")
    assert not finding.ok
    assert "bubblewrap" in finding.advice


def test_the_doctor_does_not_load_torch(examined: dict[str, Any]) -> None:
    assert examined["torch"] is False


def test_ranges_of_cores() -> None:
    assert doctor._ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
