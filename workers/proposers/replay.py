"""Recorded proposals: JSON lines, one Proposal each, so that a Run can be repeated exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from db.views.work import ProposalResult
from evolution.types import ProposalOutcome
from prompts import ReplyError, read_reply
from runtime.settings import Settings
from workers.proposers.base import Request, candidate, none

MAX_FILE_BYTES = 256 * 2**20


class ReplayProposer:
    """Answers Proposal n of the arm `replay:NAME` with line n of that file, EXHAUSTED beyond the last.

    A line has `source`, or `reply` (read as a model's reply would be); an `outcome` other than "candidate" is repeated.
    """

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.replay_dir

    def propose(self, request: Request) -> ProposalResult:
        name = request.work.arm.proposer.partition(":")[2]
        try:
            lines = self._lines(name)
            if request.work.arm_number >= len(lines):
                return none(ProposalOutcome.EXHAUSTED, f"{name} has {len(lines)} recorded proposals")
            return _answer(json.loads(lines[request.work.arm_number]), request)
        except (OSError, ValueError, TypeError) as error:
            return none(ProposalOutcome.EXHAUSTED, f"replay of {name!r}: {error}")

    def _lines(self, name: str) -> list[str]:
        if self._folder is None:
            raise ValueError("set WARPWRIGHT_REPLAY_DIR to the folder of recorded proposals")
        if not name or Path(name).name != name or name.startswith("."):
            raise ValueError("name a file of that folder, without a path")
        path = self._folder / name
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"the file is larger than {MAX_FILE_BYTES} bytes")
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _answer(line: Any, request: Request) -> ProposalResult:
    if not isinstance(line, dict):
        raise ValueError("a line is a JSON object with source or reply")
    outcome = ProposalOutcome(line.get("outcome") or ProposalOutcome.CANDIDATE)
    detail = str(line.get("detail") or "replayed")
    if isinstance(line.get("source"), str):
        return candidate(line["source"], detail=detail)
    if outcome is not ProposalOutcome.CANDIDATE and outcome is not ProposalOutcome.DUPLICATE:
        return none(outcome, detail)
    if not isinstance(line.get("reply"), str):
        raise ValueError("a line is a JSON object with source or reply")
    parents = request.work.parents
    try:
        return candidate(read_reply(line["reply"], parent=parents[0].source if parents else None), detail=detail)
    except ReplyError as error:
        return none(ProposalOutcome.MALFORMED, str(error))
