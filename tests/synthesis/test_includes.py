"""The headers above a kernel's C++, and the intrinsics that stand in their place."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from synthesis.cpp.includes import INTRINSICS, includes

WHOLE = "#include <immintrin.h>"


def test_only_headers_that_are_named_are_included() -> None:
    assert includes("int64_t x;") == "#include <cstdint>"
    assert includes("std::min(a, b) + std::memcpy(p, q, 4)").splitlines() == [
        "#include <algorithm>", "#include <cstdint>", "#include <cstring>",
    ]  # fmt: skip
    assert "#include <cmath>" in includes("std::sqrt(x)")
    assert "#include <cmath>" in includes("std::something_new(x)")


def test_an_intrinsic_that_is_not_known_brings_the_whole_header() -> None:
    known, unknown = includes("_mm256_max_ps(a, b)"), includes("_mm256_max_ps(a, _mm256_abs_ps(b))")
    assert "__builtin_ia32_maxps256" in known
    assert "__builtin_ia32_minps256" not in known
    assert known.index("__builtin_ia32_maxps256") < known.index(WHOLE), "it is for other compilers"
    assert "__builtin" not in unknown
    assert WHOLE in unknown


def _calls(macro: str) -> str:
    """Return functions that call the intrinsics of a group, with constants where they need one."""
    lines = []
    for name, text in INTRINSICS[macro].items():
        found = re.match(rf"(\w+) {name}\((.*?)\) {{", text)
        assert found is not None, text
        parameters = [one for one in found[2].split(", ") if one]
        passed = ["8" if one.startswith("const int") else one.split()[-1] for one in parameters]
        taken = [one for one in parameters if not one.startswith("const int")]
        lines.append(f'extern "C" {found[1]} call{name}({", ".join(taken)}) {{ return {name}({", ".join(passed)}); }}')
    return "\n".join(lines)


@pytest.mark.compiles
@pytest.mark.parametrize("macro", INTRINSICS)
def test_an_intrinsic_is_compiled_as_the_compilers_header_has_it(macro: str, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    calls, made = _calls(macro), []
    for name, head in (("own", includes(calls)), ("whole", WHOLE)):
        source = tmp_path / f"{name}.cpp"
        source.write_text(f"{head}\n{calls}\n")
        command = [compiler, "-std=c++17", "-O3", "-march=skylake-avx512", "-S", "-o", "-", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if "bad value" in done.stderr:
            pytest.skip("this compiler is for another architecture")
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if line.startswith(("\t", "call")) and "\t." not in line]
        made.append([re.sub(r"\.L\w+", "label", line) for line in lines])
    assert any("call_mm" in line for line in made[0])
    assert made[0] == made[1]
