"""The CUDA backend on a pretended device: host memory, handles that are numbers, a child in this process."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.child.cpu_device import CpuDevice
from evaluator.child.gpu import device as cuda_device
from evaluator.child.gpu.chain import Steps
from evaluator.child.protocol.chain import Link, derive, make_link
from evaluator.child.protocol.cuda_driver import BLOCK_BYTES, DriverError
from evaluator.child.protocol.layout import LayoutError, TensorSpec
from evaluator.child.session import Session
from evaluator.comparison.claims import tensor_claims
from evaluator.devices import cuda, cuda_memory
from evaluator.devices.base import RoundPlan, RoundRequest
from evaluator.devices.cuda_memory import Block, Peer, RetiredBlocks, ShownBlocks, SpareBlocks
from evaluator.errors import CageError
from evaluator.types import Clock

TREE = {"tuple": [{"tensor": 0}]}


class FakeDriver:
    """Host memory under addresses; knows what is open, so that a test can see leaks and double closes."""

    ordinal = 0

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        self.opened: dict[int, int] = {}
        self.limit = 1 << 40

    def allocate(self, size: int) -> int:
        if size > self.limit:
            raise DriverError("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY")
        buffer = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(buffer) // 256) * 256
        self.blocks[address] = (buffer, size)
        return address

    def free(self, address: int) -> None:
        del self.blocks[address]

    def export(self, base: int) -> str:
        return str(base)

    def open(self, handle: str) -> int:
        address = int(handle)
        if address not in self.blocks:
            raise DriverError("cuIpcOpenMemHandle_v2", 1, "CUDA_ERROR_INVALID_VALUE")
        self.opened[address] = self.opened.get(address, 0) + 1
        return address

    def close(self, address: int) -> None:
        self.opened[address] -= 1

    def address_range(self, address: int) -> tuple[int, int]:
        return next((a, size) for a, (_, size) in self.blocks.items() if a <= address < a + size)

    def memory(self) -> tuple[int, int]:
        return 10 << 30, 20 << 30

    def make_current(self) -> None:
        """One device, one context."""

    def synchronize(self) -> None:
        """Nothing runs behind anybody's back."""

    def still_open(self) -> int:
        return sum(self.opened.values())


class FakeChild:
    """Doubles its input, into memory of its own that it exports; does what `cuda_ops` does, without CUDA."""

    def __init__(self, driver: FakeDriver, *, captured: bool = True) -> None:
        self.driver, self.captured = driver, captured
        self.cleanups: list[Any] = []
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        self.asked: list[str] = []
        self.plain_replays: list[int] = []

    def freeze(self) -> None:
        self.asked.append("freeze")

    def add_cleanup(self, action: Any) -> None:
        self.cleanups.append(action)

    def send_request(self, op: str, *, timeout_s: float) -> dict[str, Any]:
        return self.request(op, timeout_s=timeout_s)

    def receive_reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        return asked

    def request(self, op: str, *, timeout_s: float, **fields: Any) -> dict[str, Any]:
        self.asked.append(op)
        if op == "cuda_prepare":
            grant = fields["grant"]
            address = int(grant["handle"])
            raw = host_bytes(address, self.driver.blocks[address][1])
            spec = TensorSpec.from_json(grant["layouts"][0])
            self.inputs = [spec.view(raw[i * grant["pitch"] :]) for i in range(grant["count"])]
            self.captured = self.captured and fields["graph"]
            self.link = fields["link"] and Link.from_json(fields["link"], raw)
            self.made = [self.driver.allocate(BLOCK_BYTES) for _ in self.inputs]
            self.outputs = [spec.view(host_bytes(a, BLOCK_BYTES)) for a in self.made]
            return {"captured": self.captured, "why_not": None, "instances": 1, "outputs": self.said()}
        if op == "cuda_plain":
            self.plain_replays.append(fields["replays"])
            return {"alike": self.captured, **({"kernels_us": 2.5} if fields["profile"] else {})}
        if op == "cuda_round":
            steps = self.link and Steps(self.link, [[source] for source in self.inputs])
            for _ in range(fields["replays"]):
                for index, (target, source) in enumerate(zip(self.outputs, self.inputs, strict=True)):
                    if steps:
                        steps.before(index, [self.outputs[index - 1]])
                    target.copy_(source * 2)
            reply: dict[str, Any] = {"captured": self.captured, "device_us": 1.0}
            return reply if self.captured else {**reply, "outputs": self.said()}
        return {}

    def said(self) -> list[Any]:
        return [
            {"tensor": {**TensorSpec.of(t).to_json(), "handle": str(a)}}
            for t, a in zip(self.outputs, self.made, strict=True)
        ]


def host_bytes(address: int, size: int) -> torch.Tensor:
    return torch.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype=torch.uint8)


@pytest.fixture
def driver(monkeypatch):
    def as_tensor(data: Any, device: Any = None) -> torch.Tensor:
        interface = data.__cuda_array_interface__
        return host_bytes(interface["data"][0], interface["shape"][0])

    monkeypatch.setattr(cuda_memory.torch, "as_tensor", as_tensor)
    monkeypatch.setattr(cuda_device.torch, "as_tensor", as_tensor)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda device=None: {})
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return FakeDriver()


@pytest.fixture
def backend(driver):
    made = cuda.CudaBackend.__new__(cuda.CudaBackend)
    made.torch_device = torch.device("cpu")
    made._ordinal, made._cpus, made._driver = 0, None, driver
    made._looked_after, made._lasting = weakref.WeakSet(), {}
    made._ahead, made._staged = None, (None, lambda: None)
    made._properties = SimpleNamespace(total_memory=20 << 30)
    made._nvml, made._retired, made._timed, made._copy_rate_gbs = None, RetiredBlocks(), {}, None
    made._spare, made._shown = SpareBlocks(made._retired), ShownBlocks()
    return made


def calls(count: int) -> list[list[torch.Tensor]]:
    return [[torch.randn(3, 50)] for _ in range(count)]


def request(inputs, link=None, **plan) -> RoundRequest:
    plan = RoundPlan(calls=len(inputs), **plan)
    return RoundRequest(calls=inputs, plan=plan, tree=TREE, timeout_s=1.0, link=link, look=True)


def run(backend, child, inputs, link=None, **plan):
    return backend.run_round(child, request(inputs, link, **plan))


@pytest.mark.parametrize("captured", [True, False])
def test_rounds_snapshot_what_the_child_computed_from_fresh_inputs(backend, driver, captured):
    child = FakeChild(driver, captured=captured)
    assert backend.prepare(child, request(calls(2))) is (Clock.GRAPH if captured else Clock.CALLS)
    for count in (2, 5, 5):  # another number of calls prepares the child again
        inputs = calls(count)
        done = run(backend, child, inputs, replays=3)
        assert done.clock is (Clock.GRAPH if captured else Clock.CALLS)
        assert done.wall_us > 0
        for (given,), (seen,) in zip(inputs, done.outputs, strict=True):
            torch.testing.assert_close(seen, given * 2)
    assert child.asked.count("cuda_prepare") == 2
    backend.release(child)
    assert child.asked[-1] == "cuda_release"
    assert driver.still_open() == 0
    backend.release(child)
    backend.close()


@pytest.mark.parametrize(("captured", "checks"), [(True, 1), (False, 3)])
def test_replies_of_captured_calls_are_checked_once(backend, driver, captured, checks):
    seen: list[Any] = []
    child = FakeChild(driver, captured=captured)
    for _ in range(3):
        done = backend.run_round(child, replace(request(calls(2)), check=seen.append))
        assert done.device_us == 1.0
    assert len(seen) == checks


def test_a_chained_round_leaves_the_inputs_that_the_judge_derives(backend, driver):
    child, generator = FakeChild(driver), torch.Generator().manual_seed(1)
    backend.prepare(child, request(calls(2)))
    for replays in (1, 2, 7):
        inputs = [[torch.randn(64, 50)] for _ in range(4)]
        link = make_link(inputs[0], [0], 0, 64 * 50, generator)
        done = run(backend, child, inputs, link, replays=replays)
        derived = derive(inputs, done.outputs, link, replays)
        assert torch.equal(derived[0][0], inputs[0][0]) == (replays == 1)
        assert not torch.equal(derived[1][0], inputs[1][0])
        for (seen,), (mine,), (output,) in zip(done.inputs, derived, done.outputs, strict=True):
            torch.testing.assert_close(seen, mine, rtol=0, atol=0)
            torch.testing.assert_close(output, mine * 2)
    assert child.asked.count("cuda_prepare") == 2  # once without a chain, once with
    backend.release(child)


def test_a_chain_between_other_tensors_is_prepared_anew(backend, driver):
    """A captured step reads the output that it read when it was captured, whatever a later round says."""
    inputs = [[torch.randn(64, 50)] for _ in range(2)]
    link = make_link(inputs[0], [0], 0, 64 * 50, torch.Generator().manual_seed(1))
    block = Block(driver, inputs, link)
    (count,) = link.counts
    assert block.has_chain_of(Link((0,), 0, (count,), link.coefficients))
    assert not block.has_chain_of(Link((0,), 1, (count,), link.coefficients))
    assert not block.has_chain_of(Link((0,), 0, (count - 1,), link.coefficients[:, 1:]))
    assert not block.has_chain_of(Link((0, 1), 0, (1, count - 1), link.coefficients))
    assert not block.has_chain_of(None)
    block.close()


def test_plain_replays_are_timed_by_the_difference_of_a_long_and_a_short_run(backend, driver):
    child = FakeChild(driver)
    request = RoundRequest(calls=calls(2), plan=RoundPlan(calls=2), tree=TREE, timeout_s=1.0)
    backend.prepare(child, request)
    done = backend.run_plainly(child, request, call_us=500.0)
    assert child.plain_replays == [1, 3, 3, 9, 9]  # the first one does not count
    assert done.call_us >= 0
    assert done.kernels_us is None
    profiled = backend.run_plainly(child, request, call_us=500.0, profile=True)
    assert profiled.kernels_us == 2.5
    assert child.asked.count("cuda_prepare") == 1
    child.captured = False  # it has no memory for a second graph
    assert backend.run_plainly(child, request, call_us=500.0) is None
    child.captured = True
    more = RoundRequest(calls=calls(3), plan=RoundPlan(calls=3), tree=TREE, timeout_s=1.0)
    backend.run_plainly(child, more, call_us=500.0)  # a check may have had it prepared for other rounds
    assert child.asked.count("cuda_prepare") == 2
    backend.release(child)


def test_profilers_start_in_all_children_at_once_and_these_lie_stopped_then(backend, driver):
    some = [FakeChild(driver), FakeChild(driver)]
    backend.start_profilers(*some)
    assert [child.asked for child in some] == [["cuda_profiler", "freeze"]] * 2


def test_without_a_graph_when_asked(backend, driver):
    child = FakeChild(driver)
    assert backend.prepare(child, request(calls(2)), graph=False) is Clock.CALLS
    assert run(backend, child, calls(4)).clock is Clock.CALLS  # and that is remembered
    for action in child.cleanups:
        action()
    assert driver.still_open() == 0


def test_fetch_copies_and_keeps_nothing_open(backend, driver):
    child = FakeChild(driver)
    backend.prepare(child, request(calls(2)))
    before = driver.still_open()
    claims = [claim for reply in child.said() for claim in tensor_claims(reply)]
    child.outputs[0].fill_(7)
    copies = backend.fetch(child, claims)
    child.outputs[0].zero_()
    assert bool((copies[0] == 7).all())
    assert driver.still_open() == before
    for wrong in ({"handle": "12345"}, {"handle": None}, {"offset": BLOCK_BYTES}, {"shape": [1 << 20, 50]}):
        with pytest.raises(LayoutError):
            backend.fetch(child, [{**claims[0], **wrong}])
    assert driver.still_open() == before


@pytest.fixture
def own(driver, monkeypatch):
    """The child's side of a device with 1 GiB, in this process."""
    made = cuda_device.CudaDevice.__new__(cuda_device.CudaDevice)
    made.torch_device, made._driver, made._total_bytes = torch.device("cpu"), driver, 1 << 30
    made._lasting, made._handle = None, ""
    made._granted = weakref.WeakValueDictionary()
    return made


def test_what_lasts_is_opened_once_and_closed_with_its_child(backend, driver, own):
    child = FakeChild(driver)
    for turn in range(3):
        tensors = [torch.full((3, 50), float(turn)), torch.arange(8).reshape(2, 4).t(), torch.zeros(0, 4)]
        claims = own.lasting_copies(tensors)
        assert set(claims) == {id(tensors[0]), id(tensors[1])}  # an empty one lies nowhere
        found = backend.fetch(child, [claims[id(tensor)] for tensor in tensors[:2]], ours=True)
        torch.testing.assert_close(found, tensors[:2])
        assert found[1].stride() == tensors[1].stride()
        assert driver.still_open() == 1
    assert len(driver.blocks) == 1
    backend.fetch(child, [claims[id(tensors[0])]])  # of a child that is not believed it is closed at once
    assert driver.still_open() == 1
    grown = own.lasting_copies([torch.ones(3 * BLOCK_BYTES, dtype=torch.uint8)])
    assert len(driver.blocks) == 2  # the judge may look at the old one still
    (copy,) = backend.fetch(child, list(grown.values()), ours=True)
    assert bool(copy.all())
    for action in child.cleanups:
        action()
    assert driver.still_open() == 0


def test_what_does_not_fit_or_cannot_be_copied_stays_where_it_is(driver, own):
    assert own.lasting_copies([torch.zeros(17 << 20, dtype=torch.uint8)]) == {}  # a 64th of the device is 16 MiB
    assert own.lasting_copies([torch.zeros(1).expand(5)]) == {}
    assert not driver.blocks
    driver.limit = 1
    assert own.lasting_copies([torch.zeros(1)]) == {}


def test_a_block_grows_to_what_it_may_be_and_is_shown_before_it_is_used(driver, own, monkeypatch):
    assert own.lasting_copies([torch.zeros(10 << 20, dtype=torch.uint8)])
    assert own.lasting_copies([torch.zeros(14 << 20, dtype=torch.uint8)])  # twice as large would be too large
    before = own._handle
    own._lasting = own._lasting[: 1 << 20]  # too small again

    def refuse(base: int) -> str:
        raise DriverError("cuIpcGetMemHandle", 1, "CUDA_ERROR_INVALID_VALUE")

    monkeypatch.setattr(driver, "export", refuse)
    assert own.lasting_copies([torch.zeros(2 << 20, dtype=torch.uint8)]) == {}
    assert own._handle == before


class Settling(CpuDevice):
    """Keeps copies as a GPU's child does; `given` is the input of every call."""

    def __init__(self, given):
        super().__init__()
        self.given = given

    def open(self, grant, fds):
        return SimpleNamespace(calls=[[self.given]])

    def lasting_copies(self, tensors):
        self.copies = [tensor.clone() for tensor in tensors]
        return {id(t): {**self.claim(copy), "lasting": True} for t, copy in zip(tensors, self.copies, strict=True)}


@pytest.mark.parametrize(
    ("forward", "settles"),
    [
        (lambda x: x * 2, True), (lambda x: (x * 2, [x + 1]), True), (lambda x: x, False), (lambda x: x[1:], False),
        (lambda x: (x * (1 + 1j)).conj(), False), (lambda x: x.to_sparse(), False), (lambda x: (x * 2, None), True),
    ],
)  # fmt: skip
def test_a_reference_keeps_nothing_where_copies_last(forward, settles):
    session, given = Session(), torch.arange(6.0)
    session.device, session.call = Settling(given), forward
    nothing = dict.fromkeys(("lift", "poison", "in_place", "detach", "spoil"), False)
    asked = {"slot": "s", "tree": TREE, "grant": {}, "mutates": [], "repeats": 1, **nothing}
    reply = session.run({**asked, "settle": True}, [])
    assert reply["kept"] is not settles
    assert ("s" in session.kept) is not settles
    assert session._settled == {}
    if settles:
        claims = [claim for item in reply["outputs"] for claim in tensor_claims(item)]
        assert [claim["address"] for claim in claims] == [copy.data_ptr() for copy in session.device.copies]
    assert session.run({**asked, "settle": False}, [])["kept"] is True


def test_a_grant_is_read_back_and_given_up(backend, driver):
    inputs = calls(3)
    grant = backend.grant_calls(inputs)
    torch.testing.assert_close(grant.read_back(), inputs)
    grant._block.calls[1][0].zero_()  # as a child would
    assert not torch.equal(grant.read_back()[1][0], inputs[1][0])
    grant.close()
    grant.close()
    assert len(driver.blocks) == 1  # retired, not freed: the child may still look at it
    backend.close()
    assert not driver.blocks


def test_memory_that_cannot_be_had_is_our_fault_not_the_candidates(backend, driver):
    driver.limit = 1
    with pytest.raises(CageError, match="device memory"):
        backend.grant_calls(calls(1))
    with pytest.raises(LayoutError):
        Peer(driver).tensor({"shape": [1], "stride": [1], "dtype": "float32", "offset": 0, "handle": "77"})


def test_what_is_cached_is_given_back_where_memory_is_short(backend, driver, monkeypatch):
    emptied: list[int] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    for free, times in ((10 << 30, 0), (6 << 30, 0), (4 << 30, 1)):
        monkeypatch.setattr(driver, "memory", lambda free=free: (free, 20 << 30))
        backend.trim()
        assert len(emptied) == times


def test_others_hold_what_is_in_use_and_not_ours(backend, driver, monkeypatch):
    monkeypatch.setattr(cuda, "reserved_bytes", lambda device: (3 << 30, 0))
    assert backend.held_by_others() == 7 << 30
    monkeypatch.setattr(cuda, "reserved_bytes", lambda device: (12 << 30, 0))
    assert backend.held_by_others() == 0
    backend.grant_calls(calls(1)).close()
    backend.release_caches()
    assert not driver.blocks


def test_calls_of_unequal_layout_are_refused(backend):
    with pytest.raises(LayoutError):
        backend.grant_calls([[torch.zeros(2)], [torch.zeros(3)]])


def test_blocks_are_pitched(driver):
    block = Block(driver, [[torch.zeros(3, 50), torch.zeros(7, dtype=torch.int8)]] * 4)
    starts = [tensor.data_ptr() for call in block.calls for tensor in call]
    assert len(set(starts)) == 8
    assert all(start % 256 == 0 for start in starts)
    assert block.size == BLOCK_BYTES
    block.close()
    block.close()


def test_children_of_ours_are_shown_the_same_block_again_with_other_contents(backend, driver):
    first = backend.grant_calls(calls(2), ours=True)
    shown = first.fields["handle"]
    first.close()
    again, other = calls(2), calls(3)
    second = backend.grant_calls(again, ours=True)
    assert second.fields["handle"] == shown
    assert all(torch.equal(a, b) for (a,), (b,) in zip(second.read_back(), again, strict=True))
    beside = backend.grant_calls(again, ours=True)  # the other one is in use
    third = backend.grant_calls(other, ours=True)
    suspect = backend.grant_calls(again)
    assert len({shown, *(grant.fields["handle"] for grant in (beside, third, suspect))}) == 4
    for grant in (second, beside, third, suspect):
        grant.close()
    assert backend.grant_calls(again).fields["handle"] not in {shown, beside.fields["handle"], third.fields["handle"]}
    backend.close()
    assert len(driver.blocks) == 1  # of the grant that is still open


def test_only_few_blocks_are_kept_for_children_of_ours(backend, driver):
    grants = [backend.grant_calls(calls(n), ours=True) for n in range(1, 8)]
    for grant in grants:
        grant.close()
    assert len(backend._spare._blocks) == cuda_memory._SPARE_BLOCKS
    backend.close()
    assert not driver.blocks


def test_an_input_that_is_returned_is_read_where_it_lies(backend, driver, own):
    child, given = FakeChild(driver), calls(2)
    grant = backend.grant_calls(given)
    (second,) = own.open(grant.fields, []).calls[1]
    (elsewhere,) = own.lasting_copies([torch.zeros(3, 50)]).values()
    claims = [own.claim(second[1:]), own.claim(torch.zeros(0)), elsewhere]
    grant.mark_aliases(child, claims)
    assert [claim["alias"] for claim in claims] == [True, False, False]
    held = driver.still_open()
    torch.testing.assert_close(backend.fetch(child, claims[:1]), [given[1][0][1:]])
    grant.close()
    (copy,) = backend.fetch(child, claims[:1])  # retired, and still there
    torch.testing.assert_close(copy, given[1][0][1:])
    assert driver.still_open() == held
    assert backend._shown.to(FakeChild(driver)) == {}
    backend.close()
    with pytest.raises(LayoutError):
        backend.fetch(child, claims[:1])  # freed
