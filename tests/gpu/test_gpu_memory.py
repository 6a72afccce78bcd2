"""Device memory across processes: handles, sizes as the driver knows them, outputs captured in a graph."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.child.protocol.cuda_driver import BLOCK_BYTES, DriverError
from evaluator.child.protocol.layout import LayoutError
from evaluator.devices.cuda_memory import Block, Peer, Snapshot, copies, fill

ROOT = Path(__file__).parents[2]

# A child that maps a block, doubles it inside a captured graph, and claims the outputs.
CHILD = """
import json, sys, torch
from evaluator.child.gpu.calls import CudaCalls
from evaluator.child.gpu.device import CudaDevice
device = CudaDevice()
mapped = device.open(json.loads(sys.stdin.readline()), [])
calls = CudaCalls(lambda index: mapped.calls[index][0] * 2, len(mapped.calls))
assert calls.captured, calls.why_not
print(json.dumps([device.claim(output) for output in calls.outputs]), flush=True)
for line in sys.stdin:
    calls.run(int(line))
    device.finish()
    print("done", flush=True)
"""


@pytest.fixture
def child():
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate(timeout=30)


def ask(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_a_child_computes_on_our_block_and_we_snapshot_its_outputs(driver, child):
    import torch

    inputs = [torch.randn(300, 1000, device="cuda").bfloat16() for _ in range(5)]
    calls = [[tensor] for tensor in inputs]
    block = Block(driver, calls)
    fill(block.calls, calls)
    torch.cuda.synchronize()
    claims = json.loads(ask(child, json.dumps(block.fields())))
    peer = Peer(driver)
    snapshot = Snapshot(peer, claims)
    for replays in (1, 3):
        for (tensor,) in block.calls:
            tensor.normal_()
        snapshot.poison()
        torch.cuda.synchronize()
        snapshot.take()
        assert all(bool(tensor.isnan().all()) for tensor in snapshot.tensors)
        assert ask(child, str(replays)) == "done\n"
        snapshot.take()
        torch.cuda.synchronize()
        for seen, (given,) in zip(snapshot.tensors, block.calls, strict=True):
            torch.testing.assert_close(seen, given * 2)
    with pytest.raises(LayoutError):
        peer.tensor({**claims[0], "offset": peer.raw(claims[0]["handle"]).numel()})
    peer.close()
    block.close()


def test_a_handle_that_nobody_gave_is_a_false_claim(driver):
    claim = {"shape": [1], "stride": [1], "dtype": "float32", "offset": 0}
    peer = Peer(driver)
    for handle in ("00" * 64, "00", "zz", None, 7):
        with pytest.raises(LayoutError):
            peer.tensor({**claim, "handle": handle})


def test_claims_of_views_name_the_allocation(driver):
    import torch

    from evaluator.child.gpu.device import CudaDevice

    part = torch.zeros(1000, 1000, device="cuda")[10:20, 5:].mT
    said = CudaDevice().claim(part)
    start, size = driver.address_range(part.data_ptr())
    assert start + said["offset"] == part.data_ptr()
    assert size % BLOCK_BYTES == 0
    assert said["stride"] == [1, 1000]


def test_out_of_memory_is_told_apart(driver):
    _, total = driver.memory()
    with pytest.raises(DriverError) as caught:
        driver.allocate(2 * total)
    assert caught.value.out_of_memory


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_copies_keep_every_bit_of_nan(driver, name):
    import torch

    words = torch.int16 if name != "float32" else torch.int32
    most = torch.iinfo(words).max
    bits = torch.arange(most - 5000, most, dtype=torch.int64).to(words).cuda()  # NaN with all kinds of payloads
    given = bits.view(getattr(torch, name))
    ((copied,),) = copies([[given]])
    assert torch.equal(copied.view(words), bits)
