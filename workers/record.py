"""`python -m workers.record RUN -o FILE`: a Run's Proposals as lines that `replay:FILE` repeats."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from db.engine import make_engine, read_session
from db.errors import NotFound
from db.repositories import candidates, proposals, runs
from runtime.settings import settings

PAGE = 200


def lines(s: Session, run_id: str) -> Iterator[dict[str, Any]]:
    """Yield one line for each settled Proposal, in the order of asking. Raises NotFound."""
    runs.get(s, run_id)
    ids: list[tuple[int, str]] = []
    after: str | None = None
    while page := proposals.list(s, run_id, limit=PAGE, after=after):
        ids += [(proposal.number, proposal.id) for proposal in page if proposal.outcome is not None]
        after = page[-1].id
    for _, proposal_id in sorted(ids):
        proposal = proposals.get(s, proposal_id)
        made = candidates.source(s, proposal.candidate_id) if proposal.candidate_id else None
        yield {
            "number": proposal.number,
            "proposer": proposal.arm.proposer,
            "operator": proposal.arm.operator.value,
            "model": proposal.arm.model,
            "outcome": proposal.outcome.value if proposal.outcome else None,
            "detail": proposal.detail,
            "source": made.source if made else None,
            "reply": proposal.reply or None,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file. The exit status is 1 if there is no such Run."""
    parser = argparse.ArgumentParser(prog="python -m workers.record", description=__doc__)
    parser.add_argument("run", help="run_...")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a file in WARPWRIGHT_REPLAY_DIR")
    options = parser.parse_args(arguments)
    engine = make_engine(settings().database_url)
    try:
        with read_session(engine) as s:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines(s, options.run))
    except NotFound as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        engine.dispose()
    options.output.write_text(text, encoding="utf-8")
    print(f"{text.count(chr(10))} proposals in {options.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
