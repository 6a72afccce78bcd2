"""`warpwright bundle` and `warpwright collect`: device work as files, for a machine without network access."""

from __future__ import annotations

import json as json_text
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from warpwright.api import Client
from warpwright.api.boards import Collected
from warpwright.api.words import DeviceKind
from warpwright.cli.console import out, print_json, say
from warpwright.cli.files import check_output, write_text
from warpwright.cli.sessions import open_session
from warpwright.errors import BadUsage, ExitCode, Refused

MOST_SAID = 20


def bundle(
    device: DeviceKind,
    output: Path | None,
    *,
    limit: int,
    hours: float,
    server: str | None,
    data: Path | None,
    json: bool,
) -> ExitCode:
    """Save the work that waits for a kind of device. Exits 1 if none waits."""
    if not 0 < hours < math.inf:
        raise BadUsage(f"--hours must be a number above 0, not {hours:g}")
    check_output(output or Path("a.bundle"))
    with open_session(server, data) as session:
        try:
            made = session.client.create_bundle(device=device, limit=limit, hours=hours)
        except Refused as refused:
            if refused.status != 409:
                raise
            say(str(refused))
            return ExitCode.NOT_PASSED
    saved = write_text(output or Path(f"{made.id}.bundle"), made.text)
    if json:
        print_json({"id": made.id, "file": str(saved), "tasks": made.tasks, "expires_at": made.expires_at})
    else:
        tasks = f"{made.tasks} task{'s' * (made.tasks != 1)} for a {made.device_kind} device"
        out.print(f"{saved}: {tasks}, until {made.expires_at[:16].replace('T', ' ')} UTC", markup=False)
        say(f"There: python -m evaluator work {saved.name} --device {'cuda:0' if device == 'cuda' else 'cpu'}")
    return ExitCode.OK


def collect(files: Sequence[Path], *, release: bool, server: str | None, data: Path | None, json: bool) -> ExitCode:
    """Settle the answers in files. With `release`, return the bundles' other work to its queue.

    Exits 1 if no line of the files is an answer; with `release`, if none is a bundle's either.
    """
    found: list[Collected] = []
    broken, bundles = 0, dict[str, None]()
    lines = list(_lines(files))
    named = any(bundle_id is not None for bundle_id, _ in lines)
    if not (named if release else any(line is not None for _, line in lines)):
        say("no line of these files is an answer: name what `python -m evaluator work` wrote there (*.answers)")
        if named:
            say("A bundle's tasks return to their queue with --release.")
        return ExitCode.NOT_PASSED
    with open_session(server, data) as session:
        for bundle_id, line in lines:
            if bundle_id is None:
                broken += 1
                continue
            bundles[bundle_id] = None
            if line is not None:
                found.append(_settle(session.client, bundle_id, line))
        released = sum(session.client.release_bundle(id).released for id in bundles) if release else 0
    counts = Counter(one.outcome for one in found)
    if json:
        print_json({"outcomes": dict(counts), "broken_lines": broken, "released": released, "answers": found})
        return ExitCode.OK
    for one in [one for one in found if one.outcome != "settled"][:MOST_SAID]:
        say(f"{one.job_id}: {one.outcome} ({one.detail})")
    parts = [f"{counts[name]} {name}" for name in ("settled", "returned", "gone", "refused") if counts[name]]
    parts += [f"{broken} cut or changed lines"] * bool(broken) + [f"{released} given back"] * release
    out.print(", ".join(parts), markup=False)
    return ExitCode.OK


def _settle(client: Client, bundle_id: str, line: str) -> Collected:
    try:
        return client.collect_answer(bundle_id, line=line)
    except Refused as refused:
        return Collected(job_id=bundle_id, outcome="refused", detail=str(refused))


def _lines(files: Sequence[Path]) -> Iterator[tuple[str | None, str | None]]:
    """Yield the bundle's id and the line of each answer; without a line for a bundle; None for a broken line."""
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise BadUsage(f"{path}: {error.strerror or error}") from error
        for line in text.split("\n"):
            if not line.strip():
                continue
            value = _value(line)
            if "job_id" not in value and "tasks" in value:
                yield str(value["bundle_id"]), None
            elif "bundle_id" in value:
                yield str(value["bundle_id"]), line
            elif "lease" not in value:  # else a task of a bundle
                yield None, None


def _value(line: str) -> dict[str, Any]:
    try:
        value = json_text.loads(line)["value"]
    except (ValueError, KeyError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}
