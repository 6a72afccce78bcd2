"""Row kernels are ranked by a roofline before any is timed, and references that only call libraries are told."""

from __future__ import annotations

import pytest

from evaluator.types import DeviceKind, Language
from synthesis.blocks.estimate import Shape, ranked_products, shapes_of
from synthesis.blocks.rewrite import use_blocks
from synthesis.draft import Draft
from synthesis.errors import Unsupported
from synthesis.graph.program import read_program
from synthesis.ranking import Rows, estimate_us, ranked
from synthesis.strategies import propose, sequence
from tests.synthesis.checking import graphs, problem

STREAMED = {"BLOCK": 4096, "ELEMENTS": 16, "STAGES": 3}
HELD = {"TILE": 2048, "ELEMENTS": 32}
LONG = Rows(rows=1024, length=128256, item_bytes=2, loads=1, stores=0, passes=1)
UNALIGNED = Rows(rows=1024, length=50257, item_bytes=2, loads=1, stores=0, passes=1)
SQUARE = Rows(rows=4096, length=4096, item_bytes=2, loads=1, stores=1, passes=2)


def draft(name: str, **configuration: int) -> Draft:
    source = f"{name} {configuration}"
    return Draft(source=source, language=Language.TRITON, strategy=name, notes="", configuration=configuration)


def test_copies_ahead_pay_for_aligned_rows_alone() -> None:
    few = {**STREAMED, "BLOCK": 1024, "ELEMENTS": 32}
    assert estimate_us(LONG, "streamed", few) < estimate_us(LONG, "streamed", {**few, "STAGES": 1})
    assert estimate_us(UNALIGNED, "streamed", STREAMED) > estimate_us(UNALIGNED, "streamed", {**STREAMED, "STAGES": 1})


def test_rows_in_registers_are_read_once() -> None:
    assert estimate_us(SQUARE, "held", HELD) < estimate_us(SQUARE, "streamed", STREAMED)


def test_registers_that_overflow_cost() -> None:
    row = Rows(rows=8192, length=16384, item_bytes=2, loads=4, stores=1, passes=2)
    assert estimate_us(row, "held", {**HELD, "ELEMENTS": 64}) > estimate_us(row, "held", {**HELD, "ELEMENTS": 16})


def test_rows_that_shared_memory_has_no_room_for_are_not_loaded_ahead() -> None:
    source = problem("return a0 / a0.abs().mean(-1, keepdim=True)", "torch.randn(rows, n)")
    names = {
        n: {d.strategy for d in sequence(graphs(source, [{"name": "a", "rows": 4096, "n": n}]), DeviceKind.CUDA, 0)}
        for n in (32768, 65535)
    }
    assert any("on their way" in name for name in names[32768])
    assert not any("on their way" in name for name in names[65535])


def test_the_first_are_unlike_each_other() -> None:
    listed = [
        ("streamed", draft("streamed", **STREAMED)),
        ("either", draft("either", **{**HELD, **STREAMED, "MAX_ROW": 16384})),  # streams rows that are so long
        ("streamed", draft("streamed", **{**STREAMED, "STAGES": 1})),
    ]
    assert [d.configuration["STAGES"] for d in ranked(listed, [[LONG]])[:2]] in ([3, 1], [1, 3])


def test_first_proposals_for_a_softmax() -> None:
    source = problem("return torch.softmax(a0, -1)", "torch.randn(rows, n).bfloat16()")
    traced = graphs(source, [{"name": "wide", "rows": 4096, "n": 2048}])
    names = [d.strategy for _, d in zip(range(3), sequence(traced, DeviceKind.CUDA, 0), strict=False)]
    assert names[0] == "rows in registers"
    assert len(set(names[:2])) == 2


@pytest.mark.parametrize("kind", DeviceKind)
def test_a_reference_that_only_calls_libraries_is_told(kind: DeviceKind) -> None:
    source = problem("return F.conv1d(F.conv1d(a0, a1), a1)", "torch.randn(1, 4, 64), torch.randn(4, 4, 3)")
    traced = graphs(source, [{"name": "w"}])
    with pytest.raises(Unsupported, match="nothing to fuse here: 2 of 2 operations are library calls"):
        propose(traced, kind, number=0)


SKINNY = Shape(8, 14336, 4096, 1, 2, group=0, parts=1, vector=False)
PRODUCT = {"COLUMNS": 64, "DEPTH": 256, "FILL": 128, "PRODUCT_WARPS": 4, "PRODUCT_STAGES": 4}


def test_products_with_a_last_wave_of_few_programs_or_many_short_steps_come_late() -> None:
    listed = [
        draft("short", **{**PRODUCT, "COLUMNS": 16, "PRODUCT_STAGES": 6}),
        draft("few at last", **{**PRODUCT, "COLUMNS": 32, "DEPTH": 512, "PRODUCT_STAGES": 3}),
        draft("usual", **PRODUCT),
        draft("usual again", **{**PRODUCT, "FILL": 64}),  # launches the same
    ]
    names = [d.strategy for d in ranked_products(listed, [[SKINNY]])]
    assert names == ["usual", "few at last", "short", "usual again"]
    assert ranked_products(listed, [[]]) == listed


def test_products_of_a_reference_are_found_with_the_bytes_of_their_weights() -> None:
    forward = "return F.silu(F.linear(a0, a1)) * F.linear(a0, a2)"
    source = problem(forward, "torch.randn(rows, k), torch.randn(n, k), torch.randn(n, k)", sizes="rows=3, k=64, n=32")
    program = read_program(graphs(source, [{"name": "a"}, {"name": "b", "rows": 1}]))
    assert use_blocks(program) == 1
    assert [[(s.rows, s.columns, s.width, s.vector) for s in shapes] for shapes in shapes_of(program)] == [
        [(3, 32, 8, True)],
        [(1, 32, 8, True)],
    ]


def test_what_stays_a_library_call_is_told_with_its_share() -> None:
    source = problem("return F.relu(F.conv1d(a0, a1)) * 2", "torch.randn(1, 4, 64), torch.randn(4, 4, 3)")
    for kind in DeviceKind:
        draft = propose(graphs(source, [{"name": "w"}]), kind, number=0)
        assert draft is not None
        held = " that hold 50 % of the time" if kind is DeviceKind.CUDA else ""  # the roofline is a GPU's
        assert draft.left == f"1 of 2 operations are library calls{held} (conv1d)"
    heavy = problem("return F.relu(F.conv2d(a0, a1))", "torch.randn(64, 64, 99, 99), torch.randn(64, 64, 9, 9)")
    draft = propose(graphs(heavy, [{"name": "w"}]), DeviceKind.CUDA, number=0)
    assert draft is not None
    assert "hold 9" in draft.left


def test_without_rows_the_order_stays() -> None:
    listed = [("held", draft("b", **HELD)), ("held", draft("a", **HELD))]
    assert [d.strategy for d in ranked(listed, [[]])] == ["b", "a"]
    assert ranked([], [[LONG]]) == []


def test_rows_that_read_the_same_follow_each_other() -> None:
    forward = "half = a0.shape[-1] // 2\nturned = torch.cat((-a0[..., half:], a0[..., :half]), -1)\n"
    forward += "return a0 * a1[:, None] + turned * a2[:, None]"
    inputs = "torch.randn(b, heads, n, 128), torch.randn(b, n, 128), torch.randn(b, n, 128)"
    source = problem(forward, inputs, sizes="b=2, heads=4, n=9")
    sizes = [{"name": "a", "b": 2, "heads": 4, "n": 9}, {"name": "b", "b": 3, "heads": 8, "n": 5}]
    text = next(iter(sequence(graphs(source, sizes), DeviceKind.CUDA, 0))).source
    assert "run = heads // ROWS" in text, "heads share the angles of their position"
    assert [line.count("EVICT") for line in text.splitlines() if "tl.load(a1_ptr" in line] == [0, 0]
