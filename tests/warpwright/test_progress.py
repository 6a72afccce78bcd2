"""The progress of a Run from its events, as lines and in a bar."""

from __future__ import annotations

import io

from rich.console import Console

from tests.warpwright.fake_api import event_object
from warpwright.api.decoding import decode
from warpwright.api.searching import Event
from warpwright.cli.progress import ProgressDisplay, RunProgress

STORY = [
    event_object(1, "run.status", status="running"),
    event_object(2, "candidate.created", number=1, proposer="synthesiser"),
    event_object(3, "candidate.created", number=2, proposer="local"),
    event_object(4, "proposal.settled", number=3, outcome="endpoint_error", detail="HTTP 500"),
    event_object(5, "evaluation.settled", number=1, kind="judge", verdict="INCORRECT_VALUES", reason="[worst] at 3"),
    event_object(6, "evaluation.settled", number=2, kind="judge", verdict="PASSED", speedup=1.25),
    event_object(7, "evaluation.settled", number=4, kind="judge", verdict="PASSED", speedup=None),
    event_object(
        8,
        "evaluation.settled",
        number=1,
        kind="confirm",
        verdict="PASSED",
        promoted=False,
        confirmed=1.02,
        why_not=["only 1.004x is sure", "it is slower on b at 0.84x"],
    ),
    event_object(9, "champion.promoted", number=2, speedup=1.2),
]


def test_who_is_not_asked_again_is_named_with_what_to_change() -> None:
    progress = RunProgress()
    said = {"proposer": "one", "fault": "thoughts_only", "detail": "one: raise max_output_tokens"}
    whole = progress.count(decode(Event, event_object(1, "proposer.stopped", operator=None, **said)))
    assert whole == "one is not asked again in this run: one: raise max_output_tokens"
    part = progress.count(decode(Event, event_object(2, "proposer.stopped", operator="diff", **{**said, "detail": ""})))
    assert part == "one is not asked again in this run to diff: thoughts_only"


def test_the_tally() -> None:
    progress = RunProgress()
    lines = [progress.count(decode(Event, item)) for item in STORY]
    assert lines[3:] == [
        "proposal 3: endpoint_error (HTTP 500)",
        "#1 synthesiser: INCORRECT_VALUES ([worst] at 3)",
        "#2 local: PASSED, 1.25x the fastest baseline, best so far",
        "#4: PASSED, not timed",
        "#1 synthesiser: confirmed at 1.02x the fastest baseline, not promoted: only 1.004x is sure; it is slower on b"
        " at 0.84x",
        "#2 local: CHAMPION, confirmed at 1.20x the fastest baseline",
    ]
    assert progress.summary == "running · 2 candidates, 2 passed · best 1.20x, confirmed"


def test_plain_lines_where_there_is_no_terminal() -> None:
    text = io.StringIO()
    with ProgressDisplay(Console(file=text, width=60), seconds=10) as display:
        for item in STORY:
            display.show(decode(Event, item))
    assert "INCORRECT_VALUES ([worst] at 3)" in text.getvalue()
    assert len(text.getvalue().splitlines()) == 6


def test_a_bar_on_a_terminal() -> None:
    text = io.StringIO()
    with ProgressDisplay(Console(file=text, force_terminal=True, width=120), seconds=10) as display:
        for item in STORY:
            display.show(decode(Event, item))
    assert "best 1.20x, confirmed" in text.getvalue()


def note(seq: int, **data: object) -> Event:
    return decode(Event, event_object(seq, "run.progress", **data))


def test_what_the_judge_is_doing_is_said_and_over_with_its_result() -> None:
    progress = RunProgress()
    assert progress.count(note(1, text="baseline compile on small", stage="baseline")) == "baseline compile on small"
    lines = [progress.count(note(n, text=f"pair {n}", pair=n, pairs=8)) for n in range(1, 9)]
    assert [line for line in lines if line] == ["pair 1", "pair 5"], "two lines of a workload's pairs are enough"
    assert progress.summary.endswith("best none yet · pair 8"), "the bar has them all"
    refused = {"kind": "confirm", "verdict": "TIMEOUT", "promoted": False, "why_not": [], "reason": "it hangs"}
    assert progress.count(decode(Event, event_object(9, "evaluation.settled", number=3, **refused))) == (
        "#3: TIMEOUT, not promoted: it hangs"
    )
    assert progress.summary.endswith("best none yet")
    promoted = {"kind": "confirm", "verdict": "PASSED", "promoted": True}
    assert progress.count(decode(Event, event_object(10, "evaluation.settled", number=3, **promoted))) is None
    assert progress.count(decode(Event, event_object(11, "run.ended", reason="budget"))) == "ended: budget"
    assert progress.count(note(12, text="baseline eager on small", stage="baseline")) is None, "begun before the end"


def told(progress: RunProgress, event: str, data: dict[str, object]) -> str | None:
    return progress.count(decode(Event, {**STORY[0], "kind": event, "data": data}))


def test_baselines_that_come_later_and_what_they_overtake() -> None:
    progress = RunProgress()
    early = {
        "device": "H100",
        "fastest": {"a": {"mode": "eager"}, "b": {"mode": "compile"}},
        "pending": ["max-autotune"],
    }
    assert told(progress, "baseline.timed", early) == (
        "Baselines timed on H100: eager and compile are the fastest so far; max-autotune still compiles."
    )
    judged = {"kind": "judge", "verdict": "PASSED", "number": 1, "reason": "right on every check"}
    told(progress, "evaluation.settled", {**judged, "speedup": 3.0})
    late = {"device": "H100", "fastest": {"a": {"mode": "max-autotune"}}, "pending": []}
    late["rescaled"] = 0.55
    assert told(progress, "baseline.timed", late) == (
        "Baselines timed on H100: max-autotune is the fastest. Speedups so far are estimates over it: the best is "
        "about 1.65x."
    )
    assert progress.summary.endswith("best 1.65x, estimated")
    again = told(progress, "evaluation.settled", {**judged, "speedup": 1.5})
    assert again == "#1: 1.50x a baseline that was timed later"
    assert (progress.best, progress.verdicts["PASSED"]) == (1.5, 1)
    assert progress.summary.endswith("best 1.50x, unconfirmed")
    meanwhile = {**judged, "number": 3, "speedup": 1.7, "outdated": True}
    assert told(progress, "evaluation.settled", meanwhile) == (
        "#3: PASSED, about 1.70x a baseline that came meanwhile, an estimate"
    )
    assert progress.summary.endswith("best 1.70x, estimated")
    slow = {**judged, "number": 2, "reason": "right on 30 checks, slower: 0.41x the fastest baseline"}
    assert told(progress, "evaluation.settled", {**slow, "speedup": 0.41}) == f"#2: {slow['reason']}"
