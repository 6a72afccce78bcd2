"""Files that are no Candidates: each gets a clear Verdict in time, and leaves nothing behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from evaluator.languages import detect
from evaluator.schema import to_json
from evaluator.stages import candidate_children, trial
from evaluator.stages.judge import Judge
from evaluator.subject import Subject
from evaluator.types import Candidate
from tests.adversarial import suite
from tests.adversarial.malformed_deeds import EVERY as FILES
from tests.adversarial.malformed_files import PLAIN, File
from tests.adversarial.open_findings import OPEN

_MOST_BYTES = 200_000  # of an Evaluation as JSON, however much a file prints or says

pytestmark = pytest.mark.timeout(600)  # a busy machine; a verdict takes a second on a free one


@pytest.fixture(scope="module")
def court(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[suite.Court]:
    with suite.Court(judge, tmp_path_factory.mktemp("malformed"), suite.BRIEF_PROTOCOL) as one:
        for source in (PLAIN, PLAIN + "\nimport triton\n"):
            one.assert_passes(read(source.encode()), "rmsnorm")
        one.assert_clean()
        yield one


def read(data: bytes) -> Candidate:
    """As the command line reads a file."""
    source = data.decode("utf-8", "surrogateescape")
    return Candidate(source=source, language=detect(source), proposer="file")


MARKS = suite.parameters({file.name: file.part for file in FILES}, OPEN)


@pytest.mark.parametrize("file", [pytest.param(file, id=file.name, marks=MARKS[file.name]) for file in FILES])
def test_a_malformed_file_gets_its_verdict(court: suite.Court, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    if file.limit_s is not None:
        limit_s = file.limit_s
        monkeypatch.setattr(trial, "first_call_limit_s", lambda candidate: limit_s)
        monkeypatch.setattr(candidate_children, "load_limit_s", lambda candidate: limit_s)
        monkeypatch.setattr(Subject, "construct_s", limit_s)
    found = court.try_source(read(file.data), "rmsnorm")
    assert found.verdict in file.verdicts, suite.explained(found)[:2000]
    court.assert_clean()
    said = json.dumps(to_json(found), allow_nan=False, ensure_ascii=False).encode()
    assert len(said) < _MOST_BYTES
    assert re.search(rb"(?<!\\)(\\\\)*\\u0000", said) is None  # a NUL; the six characters of its escape are text


def test_the_next_candidate_is_unharmed(court: suite.Court) -> None:
    court.assert_passes(read(PLAIN.encode()), "rmsnorm")


def test_there_are_enough_of_them_and_names_differ() -> None:
    assert len({file.name for file in FILES}) == len(FILES) >= 60
