"""Measure how easily the code is read and found: sizes, folders, docstrings, plain English, commit subjects.

    python scripts/house.py                    each room of the working tree
    python scripts/house.py --rev HEAD~3       of a commit
    python scripts/house.py --against 7f9f3d4  compared with a commit, in two columns
    python scripts/house.py --check            exit 1 where a limit is broken, and name file:line of each offender
    python scripts/house.py --list [PATH ...]  docstrings to rewrite, by file (below PATH)

Percentiles are by nearest rank. Empty files are not counted. Docstrings are those of modules, classes and functions.
Alembic's migrations are records that only grow: the length of functions leaves them out, and their folder has no limit.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
MIGRATIONS = "db/migrations/versions/"
ROOMS = ("db", "evaluator", "evolution", "prompts", "runtime", "service", "synthesis", "warpwright", "workers")
OPENERS = ("what", "whether", "how", "which", "who", "whose", "where", "whoever", "whatever")
DIALECT = re.compile(
    r"\b(lest|whoever|whatever|nobody|somebody|everybody|besides?|who|whom|whose"
    r"|what\s+is|that\s+which|of\s+which|at\s+all)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

MODULE_LINES = 450
FUNCTION_LINES = 60
FUNCTION_LINES_P95 = 30
FOLDER_FILES = 20
OPENER_PERCENT = 2.0
DIALECT_PER_1000 = 3.0
SUBJECT_CHARACTERS = 72

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Finding:
    """A place to rewrite or split: a line of a file."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(slots=True)
class Count:
    """The raw measurements of one room."""

    module_lines: list[int] = field(default_factory=list)
    function_lines: list[int] = field(default_factory=list)
    returns: list[bool] = field(default_factory=list)
    folders: Counter[str] = field(default_factory=Counter)
    documented_modules: list[bool] = field(default_factory=list)
    documented_functions: list[bool] = field(default_factory=list)
    docstrings: int = 0
    words: int = 0
    openers: list[Finding] = field(default_factory=list)
    dialect: list[Finding] = field(default_factory=list)
    long: list[Finding] = field(default_factory=list)

    def add(self, other: Count) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The printed measures of one room. Shares are in percent, lengths in lines."""

    modules: int
    lines: int
    module_median: float
    module_p95: float
    module_longest: float
    function_median: float
    function_p95: float
    function_longest: float
    annotated_returns: float
    folder_median: float
    folder_largest: int
    folder_largest_name: str
    documented_modules: float
    documented_functions: float
    relative_docstrings: float
    dialect_per_1000: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """Lengths of commit subjects, in characters."""

    commits: int
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Survey:
    """One tree: its rooms, all of them together, and the commits that led to it."""

    name: str
    counts: Mapping[str, Count]
    subjects: Subjects
    long_subjects: Sequence[str]

    @property
    def measures(self) -> dict[str, Measures]:
        total = Count()
        for count in self.counts.values():
            total.add(count)
        return {name: summarise(count) for name, count in {"all": total, **self.counts}.items()}


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the value at a percentile by nearest rank, 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else 0


def share(values: Sequence[bool]) -> float:
    """Return the percentage that is true, 100 without values."""
    return 100.0 * sum(values) / len(values) if values else 100.0


def count_module(path: str, text: str) -> Count:
    """Measure one module."""
    tree = ast.parse(text, path)
    lines = len(text.splitlines())
    folder = str(PurePosixPath(path).parent)
    count = Count(module_lines=[lines], folders=Counter({folder: 1}))
    if lines > MODULE_LINES:
        count.long.append(Finding(path, 1, f"a module of {lines} lines, above {MODULE_LINES}"))
    for node in ast.walk(tree):
        if isinstance(node, Function):
            _count_function(count, path, node)
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            _count_docstring(count, path, node)
    count.documented_modules.append(ast.get_docstring(tree) is not None)
    return count


def _count_function(count: Count, path: str, node: Function) -> None:
    count.returns.append(node.returns is not None)
    if not node.name.startswith("_"):
        count.documented_functions.append(ast.get_docstring(node) is not None)
    if path.startswith(MIGRATIONS):
        return
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    count.function_lines.append(lines)
    if lines > FUNCTION_LINES:
        count.long.append(Finding(path, node.lineno, f"{node.name} has {lines} lines, above {FUNCTION_LINES}"))


def _count_docstring(count: Count, path: str, node: Function | ast.ClassDef | ast.Module) -> None:
    text = ast.get_docstring(node, clean=False)
    if text is None:
        return
    first = node.body[0].lineno
    words = WORD.findall(text)
    count.docstrings += 1
    count.words += len(words)
    if words and words[0].lower() in OPENERS:
        opening = text.strip().splitlines()[0]
        count.openers.append(Finding(path, first, f"begins with {words[0]}: {opening[:80]}"))
    for found in DIALECT.finditer(text):
        line = first + text.count("\n", 0, found.start())
        around = " ".join(text[max(0, found.start() - 30) : found.end() + 30].split())
        count.dialect.append(Finding(path, line, f"{' '.join(found[0].split()).lower()!r} in: {around}"))


def summarise(count: Count) -> Measures:
    """Summarise the raw measurements of a room."""
    largest = max(count.folders, key=lambda name: count.folders[name], default="")
    return Measures(
        modules=len(count.module_lines),
        lines=sum(count.module_lines),
        module_median=percentile(count.module_lines, 50),
        module_p95=percentile(count.module_lines, 95),
        module_longest=percentile(count.module_lines, 100),
        function_median=percentile(count.function_lines, 50),
        function_p95=percentile(count.function_lines, 95),
        function_longest=percentile(count.function_lines, 100),
        annotated_returns=share(count.returns),
        folder_median=percentile(count.folders.values(), 50),
        folder_largest=count.folders[largest],
        folder_largest_name=largest,
        documented_modules=share(count.documented_modules),
        documented_functions=share(count.documented_functions),
        relative_docstrings=100.0 * len(count.openers) / max(count.docstrings, 1),
        dialect_per_1000=1000.0 * len(count.dialect) / max(count.words, 1),
    )


def count_rooms(files: Mapping[str, str]) -> dict[str, Count]:
    """Measure each room of a tree, given as text by path."""
    counts = {room: Count() for room in ROOMS}
    for path, text in sorted(files.items()):
        room = path.split("/", 1)[0]
        if room in counts and path.endswith(".py") and text.strip():
            counts[room].add(count_module(path, text))
    return counts


def broken_limits(survey: Survey) -> Iterator[str]:
    """Yield each broken limit of a tree; findings behind it follow as file:line."""
    for room, count in survey.counts.items():
        measures = summarise(count)
        for folder, files in sorted(count.folders.items()):
            if files > FOLDER_FILES and not f"{folder}/".startswith(MIGRATIONS):
                yield f"{folder}/: {files} files, above {FOLDER_FILES}"
        yield from map(str, count.long)
        if measures.function_p95 > FUNCTION_LINES_P95:
            yield f"{room}/: 95 % of functions have up to {measures.function_p95} lines, above {FUNCTION_LINES_P95}"
        if measures.relative_docstrings > OPENER_PERCENT:
            share_text = f"{measures.relative_docstrings:.1f} % of docstrings begin with a relative clause"
            yield f"{room}/: {share_text}, above {OPENER_PERCENT:g} %"
            yield from map(str, count.openers)
        if measures.dialect_per_1000 > DIALECT_PER_1000:
            rate = f"{measures.dialect_per_1000:.1f} dialect words per 1,000 of docstrings"
            yield f"{room}/: {rate}, above {DIALECT_PER_1000:g}"
            yield from map(str, count.dialect)


def git(*arguments: str) -> bytes:
    """Return what git prints in this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def read_tree(rev: str | None) -> dict[str, str]:
    """Return the Python files of a commit, or of the working tree without ignored ones."""
    if rev is None:
        names = git("ls-files", "-co", "--exclude-standard", "*.py").decode().splitlines()
        return {name: (ROOT / name).read_text(encoding="utf-8") for name in set(names) if (ROOT / name).is_file()}
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", rev))) as archive:
        members = [member for member in archive if member.isfile() and member.name.endswith(".py")]
        found = {member.name: archive.extractfile(member) for member in members}
        return {name: file.read().decode() for name, file in found.items() if file is not None}


def survey_of(rev: str | None, commits: str) -> Survey:
    """Measure a commit (the working tree for None) and the subjects of a range of commits."""
    subjects = git("log", "--format=%s", commits).decode().splitlines()
    lengths = [len(subject) for subject in subjects]
    summary = Subjects(commits=len(lengths), median=percentile(lengths, 50), p95=percentile(lengths, 95))
    too_long = [subject for subject in subjects if len(subject) > SUBJECT_CHARACTERS]
    return Survey(rev or "working tree", count_rooms(read_tree(rev)), summary, too_long)


def rows(measures: Measures) -> dict[str, str]:
    """Return one line of the table for each measure, as text."""
    m = measures
    return {
        "modules / lines": f"{m.modules} / {m.lines}",
        "module lines: median / p95 / max": f"{m.module_median} / {m.module_p95} / {m.module_longest}",
        "function lines: median / p95 / longest": f"{m.function_median} / {m.function_p95} / {m.function_longest}",
        "annotated returns": f"{m.annotated_returns:.1f} %",
        "files per folder: median / max": f"{m.folder_median} / {m.folder_largest} ({m.folder_largest_name}/)",
        "docstrings: modules / public functions": f"{m.documented_modules:.0f} / {m.documented_functions:.0f} %",
        "docstrings that begin with What, Who ...": f"{m.relative_docstrings:.1f} %",
        "dialect words per 1,000 of docstrings": f"{m.dialect_per_1000:.1f}",
    }


def table(surveys: Sequence[Survey]) -> Iterator[str]:
    """Yield the lines of the printed table, one column for each tree."""
    measured = [survey.measures for survey in surveys]
    yield f"{'':44}" + "".join(f"{survey.name:34}" for survey in surveys).rstrip()
    for room in measured[0]:
        yield f"\n{room}"
        columns = [rows(measures[room]) for measures in measured]
        for label in columns[0]:
            yield f"  {label:42}" + "".join(f"{column[label]:34}" for column in columns).rstrip()
    told = [f"{s.subjects.median} / {s.subjects.p95} of {s.subjects.commits} commits" for s in surveys]
    yield f"\n{'commit subject characters: median / p95':44}" + "".join(f"{text:34}" for text in told).rstrip()


def listed(counts: Mapping[str, Count], paths: Sequence[str]) -> Iterator[str]:
    """Yield every docstring finding, in the order of files and lines."""
    roots = [PurePosixPath(path) for path in paths]
    findings = [found for count in counts.values() for found in (*count.openers, *count.dialect)]
    for found in sorted(findings, key=lambda finding: (finding.path, finding.line)):
        if not roots or any(PurePosixPath(found.path).is_relative_to(root) for root in roots):
            yield str(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 1 where --check finds something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rev", help="the commit to measure; without it the working tree")
    parser.add_argument("--against", metavar="REV", help="a commit to compare with; subjects count since then")
    parser.add_argument("--commits", metavar="RANGE", help="whose subjects count, as in git log; by default all")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 where a limit is broken")
    parser.add_argument("--list", action="store_true", dest="listing", help="print docstrings to rewrite")
    parser.add_argument("paths", nargs="*", help="with --list: only files below these paths")
    options = parser.parse_args(arguments)
    head = options.rev or "HEAD"
    commits = options.commits or (f"{options.against}..{head}" if options.against else head)
    survey = survey_of(options.rev, commits)
    if options.listing:
        print(*listed(survey.counts, options.paths), sep="\n")
        return 0
    if options.check:
        broken = [*broken_limits(survey)]
        if options.commits or options.against:
            broken += [f"a subject of {len(text)} characters: {text}" for text in survey.long_subjects]
        print(*broken or ["house: every limit is kept"], sep="\n")
        return int(bool(broken))
    surveys = [survey_of(options.against, options.against), survey] if options.against else [survey]
    if options.json:
        found = [
            {"tree": s.name, "rooms": {k: asdict(m) for k, m in s.measures.items()}, "subjects": asdict(s.subjects)}
            for s in surveys
        ]
        print(json.dumps(found, indent=2))
    else:
        print(*table(surveys), sep="\n")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for `| head`
    sys.exit(main())
