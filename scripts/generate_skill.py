"""Write the skill for coding agents (warpwright/agents/skill_files) from the tools, the judge's numbers and the guide.

`python scripts/generate_skill.py` writes it; with `--check` it exits 1 if a file differs. `make docs` runs it.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evaluator.timing.protocol import STANDARD  # noqa: E402  the checkout's own rooms come after the path is set
from service.agents.tools import ANNOTATIONS, LONGEST_WAIT_S, Tools  # noqa: E402
from warpwright.cli.optimize import DEFAULT_PORT, DEFAULT_SECONDS  # noqa: E402
from warpwright.errors import ExitCode  # noqa: E402

GUIDE = ROOT / "docs" / "guide"
TARGET = ROOT / "warpwright" / "agents" / "skill_files"
REFERENCES = ("problem-file.md", "candidate-file.md", "judge.md", "exit-codes.md")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")

TEMPLATE = """\
---
name: warpwright
description: >-
  Makes a slow PyTorch operation faster with a kernel that is proved right and proved faster. Use it when asked to speed
  up a PyTorch function, module or kernel (Triton, CUDA, C++), or to check or time one honestly.
---

# Warpwright

Warpwright judges kernels and searches for them. A speedup that it calls confirmed was measured in new processes, on
secret inputs, against the fastest baseline (eager and every mode of torch.compile). Never report another number as a
speedup.

## Reach it

- As tools: add an MCP server that runs `warpwright mcp` (it starts what it needs), or the address
  `http://127.0.0.1:{port}/mcp` of a service (`warpwright serve`), with the header `Authorization: Bearer KEY` where it
  asks for keys.
- As commands, where no tools are connected: `warpwright judge PROBLEM.py KERNEL.py --json`,
  `warpwright optimize PROBLEM.py -o best.py` ({seconds:g} s unless a limit is given).
  Exit codes: {exits}.

## Tools

{tools}

Every result has a `next` line that says which tool to call next. A tool waits at most {wait:g} s and reports progress;
call `get_judgement` or `run_state` again to wait longer.

## The loop

1. Find the slow operation with a profiler. Write it as a problem file: `class Model(nn.Module)` and `get_inputs()` with
   the real shapes ([problem file](references/problem-file.md)). Two or more WORKLOADS keep a kernel honest.
2. `find_problems`, then `submit_problem`. `describe_problem` returns the judge's rules for it, what earlier runs found,
   and how to write in the language.
3. Write `class ModelNew(nn.Module)` ([candidate file](references/candidate-file.md)) and `judge_kernel` it.
   - Not PASSED: repair what `reason` and `evidence` name. Do not weaken the problem to make a kernel pass.
   - PASSED and not the champion: `evidence` has the times beside the baseline's. Attack what limits them.
   - `champion` is true: it is proved.
4. Or let it search: `start_run` with `seconds`, `run_state` with `wait_s`, `resume_run` to go on. Kernels of yours go
   in as `seed_kernels`.
5. `best_kernel` with `form="file"` is a module to put in place of the original. Outside what was verified it lets the
   reference answer. Say in your report which speedup was confirmed, on which device.

## The judge's rules

- `ModelNew` takes what `Model` takes. Parameters and buffers keep names and shapes: they are loaded with random values
  before anything is checked, so nothing about their values may be baked in.
- Right on any values (NaN, infinities, extremes) at the workloads' shapes and near them, on held-out ones too; with
  `DOMAIN = "general"` on every size and stride that the reference accepts.
- Fresh outputs, unchanged inputs, no results remembered from an earlier call, no clocks, streams, files, processes.
- Accuracy is compared with a float64 reference: accumulate in float32 or better, no TF32 and no fast-math unless the
  problem allows it.
- Promotion needs, from {pairs} pairs of new processes, a gain whose one-sided {confidence:g} % lower bound is above
  {gain:g} % and above the device's own noise, and no workload below {worst:g} times the baseline's speed.
- What looks fast by deceit (cached outputs, work moved out of the clock, other streams) is refused as REWARD_HACK.

All of it: [judge](references/judge.md).
"""


def skill_page() -> str:
    """Return SKILL.md."""
    promotion = STANDARD.promotion
    lines = []
    for name, hints in ANNOTATIONS.items():
        words = " ".join((inspect.getdoc(getattr(Tools, name)) or "").split())
        lines.append(f"- `{name}`{'' if hints['read_only_hint'] else ' (changes something)'}: {words}")
    exits = ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode)
    return TEMPLATE.format(
        port=DEFAULT_PORT,
        seconds=DEFAULT_SECONDS,
        exits=exits,
        tools="\n".join(_wrapped(line) for line in lines),
        wait=LONGEST_WAIT_S,
        pairs=STANDARD.process_pairs,
        confidence=100 * promotion.confidence,
        gain=100 * promotion.least_gain,
        worst=promotion.worst_workload,
    )


def _wrapped(line: str, width: int = 120) -> str:
    words, lines = line.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("  " + word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\n".join(lines)


def reference(name: str) -> str:
    """Return a page of the guide whose links lead to pages of the skill, or are text."""

    def linked(match: re.Match[str]) -> str:
        text, target = match.groups()
        page = target.partition("#")[0]
        return match.group(0) if page in ("", *REFERENCES) or "://" in target else text

    return _LINK.sub(linked, (GUIDE / name).read_text(encoding="utf-8"))


def pages() -> dict[str, str]:
    """Return every file of the skill by its path."""
    return {"SKILL.md": skill_page(), **{f"references/{name}": reference(name) for name in REFERENCES}}


def main(arguments: list[str]) -> int:
    """Write the files. With --check return 1 if one differs."""
    stale = []
    for name, text in pages().items():
        path = TARGET / name
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run make docs\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
