"""Compute the outcome of a row from its record, with one function per kind of record."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.cpu.figures import ratio as fastest_ratio
from bench.report.anchors import anchor_rows, anchors
from bench.report.records import RESULTS, Entry, document, entries, ratio

Outcome = Callable[..., str]
_FEW_RUNS = 4  # that need no medians


def demo(record: str, session: int) -> str:
    """Return speedups over the fastest Baseline and eager of one noted session of `make demo`."""
    found = document(record)["sessions"][session]
    text = f"**{found['fastest']['ratio']:.2f}x** {_interval(found['fastest'])} the fastest baseline"
    if "eager" in found:
        text += f"; {found['eager']['ratio']:.2f}x {_interval(found['eager'])} eager"
    return text + f"; {found['candidates']} candidates; {found['seconds']} s, set-up {found['setup_s']} s"


def optimised(record: str, problem: str) -> str:
    """Return the confirmed speedups of a Champion, over all Workloads and on each, and its distance from the floor."""
    row = next(row for row in document(record)["rows"] if row["problem"] == problem)
    by = {(s["against"], s["workload"]): s for s in row["speedups"]}
    whole = by["fastest", None]
    each = ", ".join(f"{w['workload']} {by['fastest', w['workload']]['value']:.2f}x" for w in row["workloads"])
    last = row["workloads"][-1]
    return (
        f"**{whole['value']:.2f}x** {_interval(whole['interval'])} the fastest baseline; "
        f"{by['eager', None]['value']:.2f}x eager; {each}; "
        f"{_percent(last['floor_us'] / last['median_us'], 0)} of the memory roof on {last['workload']}"
    )


def whole_runs(record: str, sessions: Sequence[str] = ()) -> str:
    """Return how each whole run ended, when its first verdict came, and its length; before that their medians."""
    rows = list(entries(record, sessions))
    found = [_medians(rows)] if len(rows) > _FEW_RUNS else []
    for row in rows:
        champion = row["champion"]
        end = f"**{champion['speedup']:.2f}x**" if champion else "no champion"
        first_s = row["first_verdict_s"]
        verdict = "no verdict" if first_s is None else f"first verdict after {first_s:.0f} s"
        times = f"{verdict}, {row['total_s']:.0f} s in all"
        found.append(f"{row['problem']}: {end}, {times}")
    return "; ".join(found)


def _medians(rows: Sequence[Mapping[str, Any]]) -> str:
    gains = sorted(row["champion"]["speedup"] for row in rows if row["champion"])
    between = f" ({gains[0]:.2f}x to {gains[-1]:.2f}x)" if gains else ""
    first_s = statistics.median(row["first_verdict_s"] for row in rows if row["first_verdict_s"] is not None)
    total_s = statistics.median(row["total_s"] for row in rows)
    medians = f"medians: first verdict after {first_s:.0f} s, {total_s:.0f} s in all"
    return f"**{len(gains)} champions of {len(rows)}**{between}; {medians}"


def unpromoted(record: str) -> str:
    """Return why runs without a Champion promoted nothing: their last confirmation's rules, or that none was begun."""
    found = []
    for row in entries(record):
        if row["champion"]:
            continue
        last = row["confirmations"][-1] if row["confirmations"] else None
        rules = (last["decision"] or {}).get("why_not") if last else None
        why = "; ".join(rules) if rules else "no candidate was confirmed within the time"
        found.append(f"{row['problem']}: {why}")
    return "<br>".join(f"{number}. {one}" for number, one in enumerate(found, 1))


def clock(record: str) -> str:
    """Return how far official times lie above plain replays, on the device's clock and on the wall clock."""
    rows = document(record)["rows"]
    over = {name: [row[name] / row["plain_us"] - 1 for row in rows] for name in ("official_us", "before_us")}
    now, before = over["official_us"], over["before_us"]
    return (
        f"official over a plain replay of the graph: median **+{_percent(statistics.median(now), 1)}**, largest "
        f"+{_percent(max(now), 0)}; before +{_percent(statistics.median(before), 1)}, +{_percent(max(before), 0)}"
    )


def confirmations(record: str, sessions: Sequence[str] = ()) -> str:
    """Return how many intervals of equal kernels contain 1, how many were promoted, the median half-width."""
    rows = [row for row in entries(record, sessions) if row["kind"] == "aa"]
    inside = sum(row["low"] <= 1 <= row["high"] for row in rows)
    width = statistics.median((row["high"] - row["low"]) / 2 for row in rows)
    return f"**{inside} of {len(rows)}** intervals contain 1, {_promoted(rows)}; median half-width {_percent(width, 1)}"


def power(record: str) -> str:
    """Return, per step of slowing, how often the interval excluded 1, and how often the faster kernel was promoted."""
    rows = entries(record)
    parts = []
    for step in sorted({row["step"] for row in rows}):
        some = [row for row in rows if row["step"] == step]
        apart = sum(not row["low"] <= 1 <= row["high"] for row in some)
        parts.append(f"{step} %: {apart} of {len(some)} told apart, {_promoted(some)}")
    return "; ".join(parts)


def mutations(record: str) -> str:
    """Return planted bugs caught, and correct kernels rejected."""
    rows = entries(record)
    bugs = [row for row in rows if row["mutant"]]
    originals = [row for row in rows if not row["mutant"]]
    names = {row["key"].partition("|")[0] for row in originals}
    rejected = sum(row["verdict"] != "PASSED" for row in originals)
    caught = f"**{sum(row['verdict'] != 'PASSED' for row in bugs)} of {len(bugs)}** bugs caught; " if bugs else ""
    kernels = f"{len(originals):,} judgements of {len(names)} correct kernels"
    return f"{caught}**{rejected or 'none'}** of {kernels} rejected"


def admissions(record: str) -> str:
    """Return references accepted, refused, and too large for the device."""
    counted = Counter(row["outcome"] for row in entries(record))
    return "; ".join(f"**{number}** {outcome}" for outcome, number in sorted(counted.items()))


def imported(record: str) -> str:
    """Return how many references were judged right, by kernels of ours or by their own code."""
    rows = [row for row in entries(record) if "reference" in row]
    kernels = [(kernel, row) for row in rows for kernel in row.get("kernels", ())]
    passed = [kernel for kernel, _ in kernels if kernel["verdict"] == "PASSED"]
    above = [row["reference"] for kernel, row in kernels if kernel.get("interval", (0.0, 0.0))[0] > 1]
    others = Counter(row["outcome"] for row in rows if row["outcome"] != "judged")
    others.update(kernel["verdict"] for kernel, _ in kernels if kernel["verdict"] != "PASSED")
    told = "".join(f"; {count} {name}" for name, count in sorted(others.items()))
    return f"**{len(passed)} of {len(rows)}** judged right{told}; intervals above 1: {', '.join(above) or 'none'}"


def champions_elsewhere(record: str) -> str:
    """Return the confirmed speedup of each Champion over eager and the fastest Baseline, beside KernelBench's own."""
    rows, found, none = entries(record), [], []
    for row in rows:
        theirs = row.get("kernelbench")
        if theirs is None:
            none.append(row["reference"])
            continue
        by = {s["against"]: s["value"] for s in row["speedups"] if s["workload"] is None}
        verdict = "right" if theirs["passed"] else "refused"
        their_gain = theirs["reference_ms"] / theirs["kernel_ms"]
        found.append(
            f"{row['reference']}: **{by['eager']:.2f}x** eager and {by['fastest']:.2f}x the fastest baseline, there "
            f"{verdict}, **{their_gain:.2f}x** eager"
        )
    return "; ".join(found) + f"; no champion: {', '.join(none)}" * bool(none)


def refusals(record: str) -> str:
    """Return how many kernels for one shape were refused, of those that a general domain can tell."""
    rows = entries(record)
    counts = Counter(row["outcome"] for row in rows)
    able = counts["refused"] + counts["accepted"]
    others = [f"{count} {outcome}" for outcome, count in counts.items() if outcome not in ("refused", "accepted")]
    sized = sum(bool(row.get("sizes")) for row in rows)
    return (
        f"**{counts['refused']} of {able}** refused where the reference accepts another size; sizes known in {sized} "
        f"of {len(rows)} references" + "".join(f"; {one}" for one in others)
    )


def rate(record: str, session: str, kind: str | None = None) -> str:
    """Return the kernels judged a minute in one session, compared with KernelBench."""
    rows = entries(record, [session])
    found = [row for row in rows if "summary" in row and row.get("kind") == kind]
    if not found:
        return _rate_by_file(rows, kind)
    ours, files = found[0]["ours"], found[0]["files"]
    right = f"{ours['right_answers']} of {files} answers right"
    if "ratio" not in found[0]:
        return f"{ours['per_minute']:.1f} kernels a minute; {right}"
    theirs = found[0]["kernelbench"]["per_minute"]
    return (
        f"{ours['per_minute']:.1f} kernels a minute, **{found[0]['ratio']:.2f}x** KernelBench's {theirs:.1f}; {right}"
    )


def _rate_by_file(rows: Sequence[Entry], kind: str | None) -> str:
    ours = {row["file"]: row for row in rows if row.get("who") == "ours" and row["kind"] == kind}
    theirs = {row["file"]: row for row in rows if row.get("who") == "kernelbench" and row["file"] in ours}
    if ours.keys() != theirs.keys():
        raise ValueError("both have to have judged the same files")
    times = [sum(row["wall_s"] for row in rated.values()) for rated in (ours, theirs)]
    right = sum(row["passed"] == row["right"] for row in ours.values())
    return (
        f"{len(ours)} files in {times[0]:.1f} s, KernelBench in {times[1]:.1f} s: **{times[1] / times[0]:.2f}x**; "
        f"{right} of {len(ours)} answers right"
    )


def synthesis(record: str) -> str:
    """Return the synthesiser's best draft compared with torch.compile, per Workload, without a search."""
    rows = document(record)["rows"]
    ahead = sum(row["ratio"] >= 1 for row in rows)
    worst = min(rows, key=lambda row: row["ratio"])
    best = max(rows, key=lambda row: row["ratio"])
    return (
        f"ahead of torch.compile on **{ahead} of {len(rows)}** workloads, behind on {len(rows) - ahead}; best "
        f"{best['ratio']:.2f}x ({best['problem']}), worst {worst['ratio']:.2f}x ({worst['problem']})"
    )


def examples(record: str, label: str, threads: int) -> str:
    """Return the ratios of the examples on a CPU to the fastest Baseline, and their geometric mean."""
    rows = [r for r in entries(record) if r.get("label") == label and r.get("threads") == threads]
    found = {r["problem"]: value for r in rows if (value := fastest_ratio(r))}
    mean = math.exp(statistics.fmean(math.log(value[0]) for value in found.values()))
    ahead = sum(value[0] >= 1 for value in found.values())
    each = ", ".join(f"{name} {v[0]:.2f} ({v[1]:.2f} to {v[2]:.2f})" for name, v in sorted(found.items()))
    loads = [load for r in rows for load in r.get("load", ())]
    return (
        f"**{mean:.2f}x** over {len(found)} examples, {ahead} at least as fast: {each}; load {min(loads):.0f} to"
        f" {max(loads):.0f}"
    )


SEARCHES = ("random", "best-of-N", "OpenEvolve", "ShinkaEvolve", "AdaEvolve", "EvoX", "GEPA")


def compared(record: str, tuner: str) -> str:
    """Return measurements until within 5 % of the best known kernel: those of other searches over ours."""
    table = document(record)["table"]
    text = [f"ours {table[f'ours, tuner {tuner}']['mean_needed']:.1f}"]
    text += [f"{name} {_marked(table[key])}" for name in SEARCHES if (key := f"{name}, tuner {tuner}") in table]
    return "; ".join(text)


def after(record: str, moment: int, part: str = "") -> str:
    """Return measurements for what each search reached after so many proposals, over those of ours, and both shares."""
    table = document(record)["table"]
    rows = {name: table[f"{name}, tuner on"]["after"][str(moment)] for name in SEARCHES}
    found = {name: row[part] if part else row for name, row in rows.items()}
    ours = next(iter(found.values()))["ours_share_of_best"]
    each = (f"{name} {_marked(row)}, {row['share_of_best']:.0%}" for name, row in found.items())
    return f"ours reached {ours:.0%} of the best known; " + "; ".join(each)


def ablations(record: str) -> str:
    """Return measurements without one part of the search, over those with it."""
    table = document(record)["table"]
    parts = {name.removeprefix("ours without "): row for name, row in table.items() if name.startswith("ours without")}
    return "without " + "; ".join(f"{name} {_marked(row)}" for name, row in parts.items())


def models(record: str, mixture: str) -> str:
    """Return the cost of any model at random, and of models in turn, over that of the bandit."""
    table = document(record)["table"][mixture]
    costs = {name: table[name]["over_ours"]["cost_s"] for name in ("bandit off", "models in turn", "the best alone")}
    return (
        f"any model {_marked(costs['bandit off'])}; in turn {_marked(costs['models in turn'])}; "
        f"best alone ({table['the best alone']['model']}) {ratio(costs['the best alone'])}"
    )


def lessons(record: str, within: str) -> str:
    """Return measurements without lessons over those with them."""
    table = document(record)["table"]
    alike, other = table[f"within {within}, alike"], table[f"within {within}, not alike"]
    worse = "**slower**" if other["verdict"] == "behind" else "**no gain**"
    return f"similar problems {ratio(alike)}, **no gain**; others {ratio(other)}, {worse}"


def answered(record: str, proposer: str) -> str:
    """Return how many kernels of a proposer were judged, the best of each problem, its champions, and the cost."""
    rows = [row for row in entries(record) if row["kind"] == "run" and row["proposers"] == [proposer]]
    judged, made = sum(row["judged"] for row in rows), sum(row["candidates"] for row in rows)
    best = [row for row in rows if row["best_judged"]]
    each = ", ".join(f"{row['problem']} {_counted(row['best_judged']):.2f}x" for row in best)
    won = [f"{row['problem']} **{_counted(row['champion']):.2f}x**" for row in rows if row["champion"]]
    parts = [f"{judged} of {made} kernels judged, right and timed on {len(best)} of {len(rows)} problems: {each}"]
    parts.append(f"confirmed: {', '.join(won) or '**none**'}")
    if answers := sum(row["answers"] for row in rows):
        tokens = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
        usd = sum(row["usd"] for row in rows)
        parts.append(f"{answers} answers, {tokens / 1000:.0f} k tokens, {usd:.2f} $, {usd / answers:.3f} $ an answer")
    return "; ".join([*parts, f"{sum(row['device_s'] for row in rows):.0f} device s"])


def _counted(found: Entry) -> float:
    """Return a speedup over the faster code of each baseline (ADR 23), where a record has it."""
    return float(min(found.get("counted", math.inf), found["speedup"]))


def service(record: str) -> str:
    """Return the slowest page or list at the 99th percentile, requests and failures."""
    found = document(record)
    slowest = max(row["p99_ms"] for row in found["routes"])
    within = sum(row["p99_ms"] < 250 for row in found["routes"])
    failed = sum(len(row["failures"]) for row in found["routes"])
    size = found["size"]["rows"]
    return (
        f"**{within} of {len(found['routes'])}** routes below 250 ms (p99), slowest {slowest:.0f} ms; "
        f"{sum(row['requests'] for row in found['routes']):,} requests, {failed or 'none'} failed; "
        f"{size['candidates']:,} candidates, {size['runs']:,} runs"
    )


def takehome(record: str) -> str:
    """Return the host cost of exported kernels, beside the raw kernel's call, and the time of importing 28."""
    found = document(record)
    flat, nested, imports = found["flat"], found["nested"], found["imports"]
    return (
        f"the guard takes **{flat['guard_us']:.1f} us** a call, {nested['guard_us']:.1f} us with modules inside; the"
        f" raw kernel {flat['raw_us']:.1f} us; 28 imports {imports['first_s']:.1f} s, again {imports['again_s']:.2f} s"
    )


def followers(record: str) -> str:
    """Return event streams that stayed complete, the delay of events, failed requests, memory."""
    found = document(record)
    failed = len(found["requests_failed"]) or "none"
    return (
        f"**{found['complete']} of {found['followers']}** sequences complete; events in {found['delay_p50_s']:.2f} s "
        f"(p99 {found['delay_p99_s']:.1f} s); {found['requests']:,} requests, {failed} failed; "
        f"memory {found['rss_early_mib']} to {found['rss_late_mib']} MiB"
    )


def decisions(record: str) -> str:
    """Return processor time of a decision and size of the database, by number of Candidates."""
    return "; ".join(
        f"{row['candidates']:,} candidates, {row['database']}: {row['advance_cpu_ms']['p95']:.1f} ms (p95), "
        f"{row['database_mb']:.0f} MB"
        for row in document(record)["runs"]
    )


def soak(record: str, session: str) -> str:
    """Return wrong verdicts, and what the judge held after fifty kernels and at the end."""
    found = next(row for row in entries(record, [session]) if "counted" in row)
    first, last = found["counted"]
    held = ", ".join(f"{name} {first[key]} and {last[key]}" for key, name in _HELD.items() if key in first)
    return f"{last['kernels']:,} kernels, **{len(found['wrong_verdicts'])}** wrong verdicts; {held}"


_HELD = {
    "descriptors": "descriptors",
    "processes": "processes",
    "files": "files",
    "resident_mib": "MiB",
    "device_mib": "GPU MiB",
}


def limits(record: str, operation: str) -> str:
    """Return, per dtype, the largest share of the limit that an honest implementation and the control use."""
    parts = []
    for row in entries(record):
        if row["op"] == operation:
            honest = {name: share for name, share in row["shares"].items() if name != "control"}
            worst = max(honest, key=honest.__getitem__)
            control = row["shares"].get("control")
            parts.append(
                f"{row['dtype']} **{honest[worst]:.2f}** ({worst})"
                + (f", control {_share(control)}" if control else "")
            )
    return "; ".join(parts)


def _share(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else "> 1000"


def text(record: str) -> str:
    """Return the second line of a record that is a text."""
    return (RESULTS / record).read_text(encoding="utf-8").splitlines()[1]


def _marked(found: Entry) -> str:
    return ratio(found) + (" **no clear difference**" if found["verdict"] == "no difference" else "")


def _interval(found: dict[str, Any]) -> str:
    return f"({found['low']:.2f} to {found['high']:.2f})"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _promoted(rows: Sequence[Entry]) -> str:
    return f"{sum(row['promote'] for row in rows) or 'none'} promoted"


OUTCOMES: dict[str, Outcome] = {
    one.__name__: one
    for one in (
        demo, optimised, whole_runs, unpromoted, clock, confirmations, power, mutations, admissions, imported, refusals,
        rate, synthesis, compared, after, ablations, models, lessons, service, takehome, followers, decisions, soak,
        limits, text, anchors, anchor_rows, answered, examples, champions_elsewhere,
    )
}  # fmt: skip
