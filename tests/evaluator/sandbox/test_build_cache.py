"""Files that Candidates compiled are kept in memory and, for other judges of the machine, in a folder."""

import base64
import os

import pytest

from evaluator.sandbox.build_cache import FOLDER_VARIABLE, BuildCache, collect_built_files
from evaluator.types import Candidate, Environment, Language

VERSIONS = Environment(python="3.12", torch="2.11", triton="3.6")
FILES = {"triton/ABC-d_1/kernel.cubin": b"\x7fELF", "native/" + 32 * "a" + ".so": b"so"}


def candidate(text: str = "one") -> Candidate:
    return Candidate(source=f"# {text}", language=Language.TRITON, proposer="test")


def test_another_judge_with_equal_versions_finds_the_files(tmp_path):
    BuildCache(VERSIONS, tmp_path).put(candidate(), FILES)
    assert BuildCache(VERSIONS, tmp_path).get(candidate()) == FILES
    assert BuildCache(VERSIONS, tmp_path).get(candidate("two")) is None
    other = Environment(python="3.12", torch="2.13", triton="3.7")
    assert BuildCache(other, tmp_path).get(candidate()) is None
    assert not list(tmp_path.glob("*.new"))


def test_without_a_folder_files_stay_in_memory(monkeypatch, tmp_path):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    kept = BuildCache.from_environment(VERSIONS)
    kept.put(candidate(), FILES)
    assert kept.get(candidate()) == FILES
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "made"))
    BuildCache.from_environment(VERSIONS).put(candidate(), FILES)
    assert BuildCache.from_environment(VERSIONS).get(candidate()) == FILES
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


def test_an_unwritable_folder_is_ignored(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "below"))
    kept = BuildCache.from_environment(VERSIONS)
    kept.put(candidate(), FILES)
    assert kept.get(candidate()) == FILES
    gone = BuildCache(VERSIONS, tmp_path / "gone")
    gone.put(candidate(), FILES)
    assert gone.get(candidate()) == FILES


def test_unexpected_file_names_are_left_out(tmp_path):
    kept = BuildCache(VERSIONS, tmp_path)
    kept.put(candidate(), {**FILES, "../evil.so": b"", "candidate.py": b"", "triton/../x": b""})
    assert kept.get(candidate()) == FILES


def test_a_broken_archive_is_ignored(tmp_path):
    BuildCache(VERSIONS, tmp_path).put(candidate(), FILES)
    for path in tmp_path.glob("*.zip"):
        path.write_bytes(b"no archive")
    assert BuildCache(VERSIONS, tmp_path).get(candidate()) is None


def test_the_oldest_archives_go_first(tmp_path):
    for age, name in enumerate(("old", "new")):
        BuildCache(VERSIONS, tmp_path, kept_bytes=1000).put(candidate(name), {"triton/K/k.cubin": os.urandom(600)})
        for path in tmp_path.glob("*.zip"):
            if path.stat().st_mtime > 1e9:
                os.utime(path, (age, age))
    assert BuildCache(VERSIONS, tmp_path).get(candidate("old")) is None
    assert BuildCache(VERSIONS, tmp_path).get(candidate("new")) is not None


@pytest.mark.parametrize(
    "said",
    [{}, {"files": []}, {"files": {"triton/K/k.so": "no base64!"}}, {"files": {"triton/K/k.so": 7}}, {"files": None}],
)
def test_malformed_replies_give_no_files(said):
    class Child:
        def request(self, op, timeout_s):
            return said

    assert collect_built_files(Child()) == {}


def test_a_childs_files_are_decoded():
    class Child:
        def request(self, op, timeout_s):
            return {"files": {name: base64.b64encode(data).decode() for name, data in FILES.items()}}

    assert collect_built_files(Child()) == FILES
