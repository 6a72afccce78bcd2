"""Facts of a CPU: the same in every call, and nothing where the machine does not tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.devices import cpu

INFO = {
    "cpu family": "25",
    "model": "17",
    "cpu MHz": "812.3",
    "bogomips": "4800.10",
    "flags": "fpu sse2 avx avx2 f16c fma avx512f avx512dq avx_vnni amx_tile erms",
}


def test_generation_and_vector_instructions() -> None:
    assert cpu._model(INFO) == "family 25 model 17, base clock 2400 MHz"
    assert cpu._vector_flags(INFO) == ["avx2", "f16c", "fma", "avx512f", "avx512dq", "avx_vnni", "amx_tile"]


def test_a_machine_that_does_not_tell() -> None:
    assert cpu._model({}) is None
    assert cpu._vector_flags({}) == []
    assert cpu._caches(10**6) == []


@pytest.mark.skipif(not Path("/sys/devices/system/cpu/cpu0/cache/index0/size").exists(), reason="no caches are told")
def test_caches_are_told_by_level() -> None:
    found = cpu._caches(0)
    assert any(text.startswith("L1 data ") for text in found)
    assert all(re.fullmatch(r"L\d( data| instruction)? \d+[KM]", text) for text in found), found
