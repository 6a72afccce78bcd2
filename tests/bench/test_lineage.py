"""The study of recorded answers agrees with the archives."""

from __future__ import annotations

import re
from pathlib import Path

from bench.lineage import table
from db.recording import read_recording

ROOT = Path(__file__).parents[2]
RECORDED = sorted((ROOT / "docs" / "studies" / "real-answers").glob("*.zip"))
STUDY = (ROOT / "docs" / "studies" / "real-answers.md").read_text(encoding="utf-8")


def test_every_row_of_the_study_is_in_an_archive() -> None:
    held = {line for path in RECORDED for line in table(read_recording(path.read_bytes()))}
    told = re.findall(r"^\| \d+: .*$", STUDY, re.MULTILINE)
    assert len(told) >= 12
    assert [line for line in told if line not in held] == []


def test_a_champion_of_each_recording_is_in_the_study() -> None:
    assert len(RECORDED) == 3
    for path in RECORDED:
        recording = read_recording(path.read_bytes())
        champion = next(c for c in recording.lines["candidates"] if c["id"] == recording.run["run"]["champion_id"])
        confirmed = [
            line for line in table(recording) if line.startswith(f"| {champion['number']}:") and "| confirm |" in line
        ]
        assert confirmed
        assert confirmed[0] in STUDY
