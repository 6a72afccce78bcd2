"""The reference's graph in a prompt: operations with their bytes, without views; traced once, and never waited for."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.types import DeviceKind, Problem
from runtime.settings import Settings
from synthesis import Graph, TraceError
from synthesis.graph.aten import Call, Value
from tests.support.scripted_llm import ScriptedLLM
from tests.workers.test_model_proposer import GOOD, endpoint
from tests.workers.work_items import propose_work
from workers.deadline import Deadline
from workers.graphs import Graphs
from workers.models.graph import graph_note
from workers.proposers.base import Request
from workers.proposers.model import ModelProposer

BF16 = "bfloat16"


def call(name: str, op: str, *shape: int, of: tuple[str, ...] = (), dtype: str = BF16) -> Call:
    refs = tuple({"ref": one} for one in of)
    return Call(name=name, op=op, target="", args=refs, kwargs={}, values=(Value(shape, dtype),))


GRAPH = Graph(
    workload="small",
    sizes={},
    source="",
    arguments=(),
    nodes=(
        call("x", "input", 16, 4096),
        call("w", "parameter", 1024, 4096),
        call("t", "aten.t.default", 4096, 1024, of=("w",)),
        call("mm", "aten.mm.default", 16, 1024, of=("x", "t")),
        call("float", "aten._to_copy.default", 16, 1024, of=("mm",), dtype="float32"),
        Call(name="cat", op="aten.cat.default", target="", args=([{"ref": "mm"}, {"ref": "mm"}], 1), kwargs={},
             values=(Value((16, 2048), BF16),)),
    ),
    outputs=("cat",),
    structure="tensor",
)  # fmt: skip


class Canned(Graphs):
    """Graphs without a tracer."""

    def __init__(self, found: Mapping[str, Graph] | None) -> None:
        super().__init__()
        self.found, self.asked = found, 0

    def of(self, problem: Problem, kind: DeviceKind, deadline: Deadline) -> Mapping[str, Graph]:
        self.asked += 1
        if self.found is None:
            raise TraceError("no graph")
        return self.found


def test_operations_have_their_operands_bytes_and_flops_and_views_are_left_out() -> None:
    larger = Graph(**{**{name: getattr(GRAPH, name) for name in GRAPH.__slots__}, "workload": "none", "nodes": ()})
    note = graph_note({"small": GRAPH, "none": larger})
    assert note is not None
    assert note.workload == "small"
    assert [one.name for one in note.operations] == ["mm.default", "_to_copy.default", "cat.default"]
    product, copy, cat = note.operations
    assert product.inputs == "bfloat16 [16, 4096], bfloat16 [4096, 1024]"
    assert product.bytes == 2 * (16 * 4096 + 4096 * 1024 + 16 * 1024)
    assert product.flops == 2 * 16 * 4096 * 1024
    assert (copy.output, copy.bytes, copy.flops) == ("float32 [16, 1024]", 6 * 16 * 1024, 0)
    assert cat.bytes == 2 * 16 * (1024 + 2048)
    assert graph_note({}) is None


def told(graphs: Canned, seconds: float) -> str:
    with ScriptedLLM([GOOD]) as server:
        proposer = ModelProposer(Settings(models=(endpoint(server),)), graphs=graphs)
        return proposer.propose(Request(work=propose_work(), deadline=Deadline(seconds))).prompt


def test_a_prompt_shows_the_graph_where_there_is_one_and_time_for_it() -> None:
    assert "## What eager PyTorch runs on small" in told(Canned({"small": GRAPH}), 500.0)
    assert "What eager PyTorch runs" not in told(Canned(None), 500.0)
    hurried = Canned({"small": GRAPH})
    assert "What eager PyTorch runs" not in told(hurried, 20.0)
    assert hurried.asked == 0
