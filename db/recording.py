"""A Run as one archive with all its inputs and results, to be replayed without a model.

A zip of JSON lines, the same bytes for the same Run. `manifest.json` names the schema version and the hash of every
other member. The archive holds everything that the Run's owner may see, held-out Workloads included.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.clock import iso
from db.errors import DbError
from db.packing import load_evaluations
from db.repositories import events, problems, proposals, runs
from db.tables.core import AdmissionRow, BaselineRow, CandidateRow, EvaluationRow, ProposalRow, RunRow
from evaluator.schema import to_json
from evaluator.types import SCHEMA_VERSION

FORMAT = "warpwright-run"
MAX_BYTES = 2**30
_PAGE = 500
_EPOCH = (1980, 1, 1, 0, 0, 0)


class BadRecording(DbError):
    """The archive is not a complete recording of a Run; the message says why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A checked archive: its single values, and the lines of each list."""

    manifest: Mapping[str, Any]
    run: Mapping[str, Any]
    lines: Mapping[str, list[dict[str, Any]]]


def export_run(s: Session, run_id: str, out: BinaryIO, *, project_id: str | None = None) -> None:
    """Write the archive of a Run; a live Run is written as far as it is.

    Memory holds at most a page of it. Raise NotFound.
    """
    run = runs.get(s, run_id, project_id=project_id)
    row = s.get_one(RunRow, run_id)
    admission = s.get(AdmissionRow, row.admission_id) if row.admission_id is not None else None
    baseline = s.get(BaselineRow, row.baseline_id) if row.baseline_id is not None else None
    one = {
        "run": to_json(run),
        "problem": to_json(problems.get(s, run.problem_id).problem),
        "admission": admission.body if admission is not None else None,
        "baseline": baseline.body if baseline is not None else None,
        "warm": row.warm_id,
    }
    members = {
        "run.json": [one],
        "proposals.jsonl": _proposals(s, run_id),
        "candidates.jsonl": _candidates(s, run_id),
        "evaluations.jsonl": _evaluations(s, run_id),
        "events.jsonl": _events(s, run_id),
    }
    with zipfile.ZipFile(out, "w") as archive:
        manifest = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "run_id": run_id,
            "problem_hash": problems.get(s, run.problem_id).hash,
            "members": {name: _write(archive, name, values) for name, values in members.items()},
        }
        _write(archive, "manifest.json", [manifest])


def read_recording(data: bytes) -> Recording:
    """Read an archive and check it against its manifest. Raise BadRecording."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_BYTES:
                raise BadRecording(f"the recording holds more than {MAX_BYTES} bytes")
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        manifest = json.loads(members.pop("manifest.json"))
        if manifest["format"] != FORMAT or manifest["schema_version"] != SCHEMA_VERSION:
            found = f"{manifest['format']} {manifest['schema_version']}"
            raise BadRecording(f"this is {found}; expected is {FORMAT} {SCHEMA_VERSION}")
        for name, expected in manifest["members"].items():
            if hashlib.sha256(members[name]).hexdigest() != expected:
                raise BadRecording(f"{name} is not what the manifest says: the archive was changed or cut")
        lines = {
            name.removesuffix(".jsonl"): [json.loads(line) for line in members[name].decode().split("\n") if line]
            for name in manifest["members"]
            if name.endswith(".jsonl")
        }
        return Recording(manifest, json.loads(members["run.json"]), lines)
    except (
        zipfile.BadZipFile,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        EOFError,
        OSError,
        RuntimeError,
        struct.error,
        zlib.error,
        lzma.LZMAError,
    ) as error:
        raise BadRecording(f"not a recording of a run: {type(error).__name__}: {error}") from error


def _write(archive: zipfile.ZipFile, name: str, values: Iterable[Mapping[str, Any]]) -> str:
    """Write one member, a line for each value, and return the SHA-256 of its bytes."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    digest = hashlib.sha256()
    with archive.open(info, "w", force_zip64=True) as member:
        for value in values:
            line = json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace") + b"\n"
            digest.update(line)
            member.write(line)
    return digest.hexdigest()


def _proposals(s: Session, run_id: str) -> Iterable[dict[str, Any]]:
    rows = s.scalars(select(ProposalRow).where(ProposalRow.run_id == run_id).order_by(ProposalRow.number))
    for row in rows.yield_per(_PAGE):
        yield {**to_json(proposals.with_texts(s, row)), "hint": row.hint, "settled_at": iso(row.settled_at)}


def _candidates(s: Session, run_id: str) -> Iterable[dict[str, Any]]:
    rows = s.scalars(select(CandidateRow).where(CandidateRow.run_id == run_id).order_by(CandidateRow.number))
    for row in rows.yield_per(_PAGE):
        yield {
            "id": row.id,
            "number": row.number,
            "hash": row.hash,
            "language": row.language,
            "source": row.source,
            "parents": row.parents,
            "proposal_id": row.proposal_id,
            "build": row.build,
            "verdict": row.verdict,
            "speedup": row.speedup,
            "outdated": row.outdated,
            "confirmed": row.confirmed,
        }


def _evaluations(s: Session, run_id: str) -> Iterable[dict[str, Any]]:
    rows = s.scalars(select(EvaluationRow).where(EvaluationRow.run_id == run_id).order_by(EvaluationRow.id))
    for row in rows.yield_per(_PAGE):
        whole = load_evaluations(s, {row.id: row.body}) if row.body is not None else []
        yield {
            "id": row.id,
            "candidate_id": row.candidate_id,
            "ordinal": row.ordinal,
            "kind": row.kind,
            "state": row.state,
            "evaluation": to_json(whole[0]) if whole else None,
        }


def _events(s: Session, run_id: str) -> Iterable[dict[str, Any]]:
    seq = 0
    while page := events.after(s, run_id, seq, _PAGE):
        yield from (to_json(event) for event in page)
        seq = page[-1].seq
