"""The words at the top of a kernel's file: provenance, use and caveats."""

from __future__ import annotations

from evaluator.types import Evaluation, Ratio
from service.exports.base import Export
from service.exports.parts.embed import one_line
from service.exports.parts.verified import other_threads, verified_threads

_FILE = """`from this_file import ModelNew` is constructed and called as the reference's Model.
`python this_file.py --check` verifies it against the reference on fresh random inputs."""


def header(export: Export, use: str = _FILE, *, alone: bool = False) -> str:
    """Return provenance, `use` and every caveat of a kernel's file or folder; `alone`: of the kernel without its guard,
    for a project that checks it itself."""
    problem = export.problem
    rows = [
        ("problem", f"{one_line(problem.name)}, sha256 {export.problem_hash}"),
        ("kernel", f"{export.candidate_id}, sha256 {export.candidate.hash}"),
        ("", f"{export.candidate.language.value}, proposed by {one_line(export.proposed_by)}"),
        *_evidence(export),
        *_caveats(export, alone=alone),
    ]
    table = "\n".join(f"  {label:<10} {text}" for label, text in rows)
    end = "Made by Warpwright." if alone else f"{use} Made by Warpwright."
    return f"{_headline(export)}\n\n{table}\n\n{end}\n"


def _caveats(export: Export, *, alone: bool) -> list[tuple[str, str]]:
    """Return in one place what the numbers and the kernel hold for."""
    problem, threads = export.problem, verified_threads(export)
    precision = problem.precision.value
    if problem.error_budget is not None:
        precision = f"relative error {problem.error_budget:g}"
    mode = "train" if problem.train else "eval"
    shapes = (
        f"exactly these shapes{'' if alone else ' (_WW)'}, dense and aligned"
        if problem.domain.value == "declared"
        else "any shape and stride"
    )
    lines = [
        ("workloads", ", ".join(one_line(w.name) for w in problem.workloads_for(export.device_kind))),
        ("measured", f"{export.dated}, on the machine above; another machine has other times"),
        ("verified", f"{precision} accuracy in {mode} mode, on {shapes}"),
    ]
    if threads:
        counts = " or ".join(map(str, threads))
        lines.append(("", f"with {counts} CPU thread{'s' * (threads != [1])}: torch.set_num_threads({threads[0]})"))
    if alone:
        return [*lines, ("beyond it", "it may answer wrongly, or crash: nothing guards it in this form")]
    return [
        *lines,
        ("beyond it", "the reference answers, with one warning: other shapes, dtypes, layouts, devices, arguments,"),
        ("", "attributes, modes, hooks; and where gradients are asked for"),
    ]


def _headline(export: Export) -> str:
    ratio = export.evaluation.speedup("fastest") if export.evaluation else None
    name = one_line(export.problem.name)
    if ratio is None:
        return f"{name}: verified right, not timed."
    if export.estimate is not None and export.evaluation is not None:
        modes = fastest_modes(export.evaluation)
        return (
            f"{name}: estimated at {export.estimate.value:.2f} x the fastest baseline; it was judged once,\n"
            f"against {modes}, before the fastest one had compiled. NOT confirmed by a second session."
        )
    if not export.confirmed:
        return f"{name}: {ratio.value:.2f} x the fastest baseline when judged once; NOT confirmed by a second session."
    return f"{name}: {ratio.value:.2f} x as fast as the fastest PyTorch baseline, confirmed."


def _evidence(export: Export) -> list[tuple[str, str]]:
    evaluation = export.evaluation
    if evaluation is None or evaluation.device is None or evaluation.environment is None:
        return [("evidence", "none")]
    versions = evaluation.environment
    known = {
        "torch": versions.torch,
        "triton": versions.triton,
        "CUDA": versions.cuda,
        "driver": versions.driver,
        "compiler": versions.compiler,
        "Python": versions.python,
        "languages": versions.languages,
    }
    rows = [
        ("device", one_line(evaluation.device.name)),
        ("versions", ", ".join(f"{name} {one_line(version)}" for name, version in known.items() if version)),
    ]
    label = "speedup" if export.confirmed else "judged"
    if export.estimate is not None:
        low, high = export.estimate.interval.low, export.estimate.interval.high
        rows.append(
            ("estimated", f"{export.estimate.value:.3f} x against the fastest baseline, {low:.3f} to {high:.3f}")
        )
    for ratio in evaluation.speedups:
        if ratio.workload is None:
            rows.append((label, _ratio(ratio, evaluation, overtaken=export.estimate is not None)))
            label = ""
    for one in other_threads(evaluation):
        text = f"{one['speedup']:.3f} x against the fastest baseline" if "speedup" in one else one_line(one["verdict"])
        rows.append(("", f"with {one['threads']} CPU threads {text}, judged once"))
    return rows


def _ratio(ratio: Ratio, evaluation: Evaluation, *, overtaken: bool) -> str:
    against = one_line(ratio.against)
    if ratio.against == "fastest":
        modes = fastest_modes(evaluation)
        against = f"{modes}, no longer the fastest baseline" if overtaken else f"the fastest baseline ({modes})"
    low, high = ratio.interval.low, ratio.interval.high
    return (
        f"{ratio.value:.3f} x against {against}, {100 * ratio.interval.confidence:g} % interval {low:.3f} to {high:.3f}"
    )


def fastest_modes(evaluation: Evaluation) -> str:
    """Return the Baselines that were the fastest on a Workload of an Evaluation: "compile", or "compile, eager"."""
    fastest = {
        min(m.baselines, key=lambda time: time.median_us).mode: None for m in evaluation.measurements if m.baselines
    }
    return one_line(", ".join(sorted(fastest))) or "not recorded"
