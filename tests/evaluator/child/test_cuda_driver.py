"""ctypes layouts of the driver binding; tests that need a GPU are in tests/gpu."""

import ctypes

import pytest

from evaluator.child.protocol import cuda_driver
from evaluator.child.protocol.cuda_driver import BLOCK_BYTES, DeviceBytes, IpcHandle, round_to_blocks


def test_ipc_handle_is_64_bytes_and_survives_hex():
    data = bytes(range(64))
    handle = IpcHandle.from_hex(data.hex())
    assert ctypes.sizeof(IpcHandle) == 64
    assert handle.hex() == data.hex()


@pytest.mark.parametrize("text", ["", "00", "zz" * 64, "00" * 65])
def test_a_handle_of_another_length_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  bytes.fromhex words it, we only need the class
        IpcHandle.from_hex(text)


def test_blocks_are_whole_and_never_empty():
    assert [round_to_blocks(n) for n in (0, 1, BLOCK_BYTES, BLOCK_BYTES + 1)] == [
        BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 2 * BLOCK_BYTES,
    ]  # fmt: skip


def test_device_bytes_speak_the_array_interface():
    interface = DeviceBytes(0x7F00_0000, 4096).__cuda_array_interface__
    assert interface["data"] == (0x7F00_0000, False)
    assert interface["shape"] == (4096,)


def test_a_missing_driver_is_reported():
    why = cuda_driver.available()
    assert why is None or "NVIDIA driver" in why
