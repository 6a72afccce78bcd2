"""Propose Candidates in order: each strategy at its first guess, then variations of the Tunables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluator.types import DeviceKind, Language
from synthesis.blocks.estimate import Shape, ranked_products, shapes_of
from synthesis.blocks.rewrite import use_blocks, use_norms
from synthesis.cpp.module import write_module as write_cpp
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.errors import Unsupported
from synthesis.firsts import BLOCK_FIRSTS, COLUMN_FIRSTS, CPU_FIRSTS
from synthesis.graph.aten import Graph
from synthesis.graph.bias import detach_biases
from synthesis.graph.columns import join_slices, split_columns
from synthesis.graph.dots import write_out_products
from synthesis.graph.nodes import Node, Program
from synthesis.graph.orient import follow_memory
from synthesis.graph.program import EXCLUDED_RULES, read_program
from synthesis.graph.split import split_reductions
from synthesis.kernel import Kernel
from synthesis.plan import Plan, Planner, make_plan
from synthesis.ranking import SHARED_BYTES, Rows, ranked, rows_of
from synthesis.shares import left_to_libraries, library_calls, told
from synthesis.triton.columns import lane_of
from synthesis.triton.module import LONGEST_HELD
from synthesis.triton.module import write_module as write_triton
from synthesis.tuning import Configuration, configure, neighbours, read_tunables, shuffled_configurations

Write = Callable[[Mapping[str, Graph], frozenset[str]], str]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to write a Candidate: `write` makes its source, `first` lists the Configurations to begin with, `lead` of
    them before any later strategy."""

    name: str
    notes: str
    language: Language
    write: Write
    first: tuple[Configuration, ...] = ({},)
    lead: int = 0
    mode: str = ""  # how rows with reductions are read, for the ranking


def _planned(program: Program, stored: Iterable[Node] = (), *, runs: bool = False) -> tuple[Plan, Planner]:
    """Return the plan and its planner. Raise Unsupported where it only calls libraries, as the reference does."""
    plan, planner = make_plan(program, stored=stored, runs=runs)
    if library_calls(plan) and all(isinstance(s, Node) for s in plan.steps):
        raise Unsupported(f"nothing to fuse here: {told(plan)}")
    return plan, planner


def _cpp(
    processor: Processor, keep: bool, title: str, passes: str = "", *, parallel: bool = False, products: bool = False
) -> Write:
    def write(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        program = follow_memory(read_program(graphs, without, across=True), graphs)
        stored = write_out_products(program) if products else []
        if products and not stored:
            raise Unsupported("no products of few rows")
        plan, planner = _planned(program, stored, runs=True)
        source = write_cpp(plan, planner, processor, keep=keep, title=title, passes=passes, parallel=parallel)
        if parallel and "#pragma omp" not in source:
            raise Unsupported("one row with reductions: nothing that threads could share")
        return source

    return write


def _write(strategy: Strategy, graphs: Mapping[str, Graph], refused: frozenset[str] = frozenset()) -> str:
    """Write the strategy's source with as many operations fused as it can, none in `refused`. Raise Unsupported."""
    for without in EXCLUDED_RULES[:-1]:
        try:
            return strategy.write(graphs, without | refused)
        except Unsupported:
            continue
    return strategy.write(graphs, EXCLUDED_RULES[-1] | refused)


def _written(ways: Sequence[Strategy], graphs: Mapping[str, Graph]) -> list[tuple[Strategy, str]]:
    """Return the sources of all strategies that fit. Where none does for want of one operation's code, that operation
    is left to the library."""
    written: list[tuple[Strategy, str]] = []
    for refused in itertools.chain([frozenset[str]()], _operations(graphs)):
        for strategy in ways:
            try:
                source = _write(strategy, graphs, refused)
            except Unsupported:
                continue
            if source.split("\n", 1)[1] not in {s.split("\n", 1)[1] for _, s in written}:
                written.append((strategy, source))
        if written:
            break
    return written


def _operations(graphs: Mapping[str, Graph]) -> Iterator[frozenset[str]]:
    """Yield the operations that are fused, each alone."""
    try:
        fused = list(dict.fromkeys(read_program(graphs, across=True).fused))
    except Unsupported:
        return
    yield from (frozenset({name}) for name in fused)


KEPT = "costly values that a later pass needs are kept"
RECOMPUTED = "each pass computes what it needs from its inputs"
PRODUCT_NOTES = "Products of few rows are sums of ours: weights are read once, by several sums at a time."


def _of_one_thread(processor: Processor) -> tuple[Strategy, ...]:
    """Return the ways to write C++ for one thread."""
    return (
        Strategy(
            "products of few rows, fused rows",
            PRODUCT_NOTES,
            Language.CPP,
            _cpp(processor, True, "Products of few rows and fused rows in C++ for one thread", products=True),
            CPU_FIRSTS,
            lead=2,
        ),
        Strategy(
            "fused rows, costly values kept",
            "Each row is gone over in cached passes; exponentials and the like are computed once and kept.",
            Language.CPP,
            _cpp(processor, True, "Fused rows in C++ for one thread", KEPT),
            CPU_FIRSTS,
        ),
        Strategy(
            "fused rows, recomputed",
            "As above, but every pass computes what it needs from the inputs again.",
            Language.CPP,
            _cpp(processor, False, "Fused rows in C++ for one thread", RECOMPUTED),
            ({}, {"VECTOR": 16}, {"STREAM_STORES": 1}),
        ),
    )


def _of_threads(processor: Processor) -> tuple[Strategy, ...]:
    """Return the ways to write C++ for rows that threads share."""
    return (
        Strategy(
            "products of few rows, fused rows, shared among threads",
            PRODUCT_NOTES,
            Language.CPP,
            _cpp(
                processor,
                True,
                "Products of few rows and fused rows in C++, shared among threads",
                parallel=True,
                products=True,
            ),
            CPU_FIRSTS,
            lead=2,
        ),
        Strategy(
            "fused rows shared among threads, costly values kept",
            "Threads share the rows; each row is gone over in cached passes, and exponentials and the like are kept.",
            Language.CPP,
            _cpp(
                processor,
                True,
                "Fused rows in C++, shared among as many threads as torch has",
                KEPT,
                parallel=True,
            ),
            CPU_FIRSTS,
        ),
        Strategy(
            "fused rows shared among threads, recomputed",
            "As above, but every pass computes what it needs from the inputs again.",
            Language.CPP,
            _cpp(
                processor,
                False,
                "Fused rows in C++, shared among as many threads as torch has",
                RECOMPUTED,
                parallel=True,
            ),
            ({}, {"VECTOR": 16}, {"STREAM_STORES": 1}),
        ),
    )


def _gpu_program(graphs: Mapping[str, Graph], without: frozenset[str], *, columns: bool = False) -> Program:
    program = detach_biases(read_program(graphs, without, wide=True, columns=columns))
    return split_reductions(use_norms(program))


def _block_program(graphs: Mapping[str, Graph], without: frozenset[str]) -> Program:
    """Return a program whose products of columns and of slices are as building blocks read them."""
    program = _gpu_program(graphs, without)
    join_slices(program)
    split_columns(program)
    return program


ELEMENTS_TITLE = "Fused operations on each element in Triton."  # without reductions, no way to read rows is in use


def _triton(modes: tuple[str, ...], title: str) -> Write:
    def write(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        plan, planner = _planned(_gpu_program(graphs, without))
        rows = rows_of(plan)
        lengths = [n for s in plan.steps if isinstance(s, Kernel) for n in s.length.values]
        if modes in (("held",), ("looped",)) and max(lengths, default=0) > 2 * LONGEST_HELD:
            raise Unsupported("rows too long for registers")
        staged = [r.bytes_in_tiles for kernels in rows for r in kernels]
        if modes == ("looped",) and max(staged, default=0) > SHARED_BYTES:
            raise Unsupported("rows too long to be loaded ahead")
        return write_triton(plan, planner, modes=modes, title=title if any(rows) else ELEMENTS_TITLE)

    return write


def _blocks(title: str, *, norms_apart: bool = False) -> Write:
    def write(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        program = _block_program(graphs, without)
        if not use_blocks(program, norms_apart=norms_apart):
            raise Unsupported("nothing here is a building block")
        plan, planner = make_plan(program)
        return write_triton(plan, planner, modes=("held", "streamed"), title=title)

    return write


def _columns(title: str) -> Write:
    def write(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        program = _gpu_program(graphs, without, columns=True)
        use_blocks(program)
        plan, planner = make_plan(program)
        if not any(isinstance(s, Kernel) and s.in_order and lane_of(s) is not None for s in plan.steps):
            raise Unsupported("no rows across memory")
        return write_triton(plan, planner, modes=("held", "streamed"), title=title, across=True)

    return write


def _segments(title: str) -> Write:
    def write(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        plan, planner = make_plan(_gpu_program(graphs, without), segments=True)
        if not any(isinstance(s, Kernel) and s.segments is not None for s in plan.steps):
            raise Unsupported("no rows with segments")
        return write_triton(plan, planner, modes=("held",), title=title)

    return write


def _rows(mode: str, title: str) -> Write:
    write = _triton((mode,), title)

    def only_rows(graphs: Mapping[str, Graph], without: frozenset[str]) -> str:
        source = write(graphs, without)
        if f"_{mode}(" not in source:
            raise Unsupported("no rows to hold")
        return source

    return only_rows


CUDA = (
    Strategy(
        "rows across memory",
        "Reductions over dimensions that are not the last: each program reads a strip of neighbours.",
        Language.TRITON,
        _columns("Fused rows across memory in Triton: each program reduces a strip of neighbouring ones."),
        COLUMN_FIRSTS,
        lead=4,
    ),
    Strategy(
        "building blocks",
        "Products of few rows, attention and group statistics are kernels of their own, with what surrounds them.",
        Language.TRITON,
        _blocks("Building blocks in Triton, each fused with what comes before and after it."),
        BLOCK_FIRSTS,
        lead=4,
    ),
    Strategy(
        "building blocks, norms apart",
        "As above, but a norm before a product has a kernel of its own.",
        Language.TRITON,
        _blocks("Building blocks in Triton; a norm before a product has a kernel of its own.", norms_apart=True),
        BLOCK_FIRSTS,
        lead=2,
    ),
    Strategy(
        "rows and their segments in registers",
        "Each program loads whole rows once, and reduces them and their segments in registers.",
        Language.TRITON,
        _segments("Fused rows in Triton, held in the registers of one program with statistics of their segments."),
        ({}, {"ELEMENTS": 16}, {"TILE": 4096}, {"ELEMENTS": 8}),
        lead=2,
    ),
    Strategy(
        "rows in registers",
        "Each program loads whole rows once and keeps them in registers.",
        Language.TRITON,
        _triton(("held",), "Fused rows in Triton, each held in the registers of one program."),
        ({}, {"ELEMENTS": 16}, {"BLOCK": 2048}, {"TILE": 4096}, {"ELEMENTS": 8}, {"EVICT": "evict_first"}),
        mode="held",
    ),
    Strategy(
        "rows in registers, the next ones on their way",
        "Programs stay and hold one row after the other; the next is loaded while one is computed.",
        Language.TRITON,
        _rows("looped", "Fused rows in Triton, held one after the other; the next is loaded meanwhile."),
        ({}, {"STAGES": 3}, {"RESIDENT": 2}, {"ELEMENTS": 16}, {"TILE": 4096}),
        mode="looped",
    ),
    Strategy(
        "rows streamed",
        "Each program goes over its row block by block, once per pass; a softmax's peak and total in one pass.",
        Language.TRITON,
        _triton(("streamed",), "Fused rows in Triton, each streamed block by block."),
        ({}, {"ELEMENTS": 8}, {"BLOCK": 2048}, {"STAGES": 1}, {"BLOCK": 8192}, {"STAGES": 2}),
        mode="streamed",
    ),
    Strategy(
        "rows in registers or streamed",
        "Rows up to MAX_ROW are held in registers, longer ones streamed.",
        Language.TRITON,
        _triton(("held", "streamed"), "Fused rows in Triton: held in registers up to MAX_ROW, else streamed."),
        mode="either",
    ),
)


def strategies(kind: DeviceKind, processor: Processor) -> tuple[Strategy, ...]:
    if kind is DeviceKind.CUDA:
        return CUDA
    shared = _of_threads(processor) if processor.threads > 1 else ()
    return (*shared, *_of_one_thread(processor))  # small work is faster on one


def sequence(
    graphs: Mapping[str, Graph], kind: DeviceKind, seed: int, processor: Processor | None = None
) -> Iterator[Draft]:
    """Yield every Draft in the order of proposing, without repetitions.

    C++ is for `processor`, by default one thread without AVX-512.
    """
    seen: set[str] = set()
    written = _written(strategies(kind, processor or Processor()), graphs)
    shapes = _shapes_of(graphs) if any(strategy.lead for strategy, _ in written) else []
    for draft in _ordered(written, _rows_of(graphs), shapes, seed):
        if draft.source not in seen:
            seen.add(draft.source)
            yield draft


def _rows_of(graphs: Mapping[str, Graph]) -> list[list[Rows]]:
    for without in EXCLUDED_RULES:
        try:
            return rows_of(make_plan(_gpu_program(graphs, without))[0])
        except Unsupported:
            continue
    return []


def _shapes_of(graphs: Mapping[str, Graph]) -> list[list[Shape]]:
    for without in EXCLUDED_RULES:
        try:
            program = _block_program(graphs, without)
            use_blocks(program)
            return shapes_of(program)
        except Unsupported:
            continue
    return []


def _ordered(
    written: list[tuple[Strategy, str]], rows: list[list[Rows]], shapes: list[list[Shape]], seed: int
) -> Iterator[Draft]:
    """Yield the leads of strategies that have some, then first Configurations (those of rows and products by rank),
    then others."""
    rest, of_rows = [], []
    for strategy, source in written:
        firsts = [d for change in strategy.first for d in _configured(strategy, source, change)]
        firsts = ranked_products(firsts, shapes) if strategy.lead else firsts
        yield from firsts[: strategy.lead]
        if strategy.mode and strategy.mode in _modes(source):
            of_rows += [(strategy.mode, d) for d in firsts]
        else:
            rest.append(firsts[strategy.lead :])
    for drafts in itertools.zip_longest(ranked(of_rows, rows), *rest):
        yield from (d for d in drafts if d is not None)
    for strategy, source in written:
        for configuration in neighbours(*read_tunables(source)):
            yield from _configured(strategy, source, configuration)
    for strategy, source in written:
        for configuration in shuffled_configurations(read_tunables(source)[0], seed):
            yield from _configured(strategy, source, configuration)


def _modes(source: str) -> set[str]:
    """Return the ways in which a source reads rows with reductions."""
    found = {mode for mode in ("held", "looped", "streamed") if f"def _{mode}(" in source}
    return found | ({"either"} if {"held", "streamed"} <= found else set())


def _configured(strategy: Strategy, source: str, change: Configuration) -> Iterator[Draft]:
    """Yield the Draft with some Tunables changed; nothing where the source has no such Tunable."""
    tunables, configuration = read_tunables(source)
    if any(value not in tunables.get(name, ()) for name, value in change.items()):
        return
    merged = {**configuration, **change}
    yield Draft(
        source=configure(source, merged) if merged != configuration else source,
        language=strategy.language,
        strategy=strategy.name,
        notes=strategy.notes,
        left=left_to_libraries(source),
        configuration=merged,
    )


def propose(
    graphs: Mapping[str, Graph],
    device_kind: DeviceKind | str,
    *,
    number: int,
    seed: int = 0,
    tried: Collection[str] = (),
    processor: Processor | None = None,
) -> Draft | None:
    """Return the Draft for attempt `number` (from 0) of a Run; the same arguments give the same Draft.

    C++ is for `processor`; where that has several threads, some kernels share rows among them. `tried` holds sources or
    Candidate hashes that are not to be proposed again. None when nothing is left. Raise Unsupported where the
    synthesiser has no kernel for the reference.
    """
    kind = DeviceKind(device_kind)
    drafts = list(sequence(graphs, kind, seed, processor))
    if not drafts:
        _write(strategies(kind, Processor())[-1], graphs)  # says why
        raise Unsupported("no strategy fits this reference")
    known = set(tried)
    left = [d for d in drafts[min(number, len(drafts)) :] if d.source not in known and d.hash not in known]
    return left[0] if left else None
