"""The rows of the table: a Workload of a problem each, with the ceilings of an H200.

A row's name is made of its file and its Workload: problems/rows/softmax.py and "4096x4096" give
rows/softmax_4096x4096, problems/mirage_gated_mlp.py and "b8_4096" give mirage/gated_mlp_b8_4096.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.shards import of_shard
from evaluator.problem import read_problem
from evaluator.types import DeviceKind

PROBLEMS = Path(__file__).parent / "problems"
FIRST = ("kb/conv", "mirage", "int8", "int4", "kb/lstm", "kb/m", "kb/gemm")  # their compilation takes longest
COMPARATORS = ("int8/bf16_linear",)  # what other rows are compared with


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Compulsory bytes, and microseconds on an H200: the floor by measured rates, and what a plain kernel attains."""

    bytes: int
    floor_us: float
    attainable_us: float
    bound: str = "memory"


CEILINGS: dict[str, Ceiling] = {
    "mirage/rmsnorm_linear_b1": Ceiling(33_579_008, 7.84, 9.34, "memory"),
    "mirage/rmsnorm_linear_b8": Ceiling(33_693_696, 7.87, 9.36, "memory"),
    "mirage/rmsnorm_linear_b16": Ceiling(33_824_768, 7.9, 9.39, "memory"),
    "mirage/lora_linear_b8": Ceiling(33_947_648, 7.93, 9.42, "memory"),
    "mirage/lora_linear_b16": Ceiling(34_078_720, 7.96, 9.45, "memory"),
    "mirage/gated_mlp_b8_4096": Ceiling(67_239_936, 15.7, 16.69, "memory"),
    "mirage/gated_mlp_b8_11008": Ceiling(180_596_736, 42.17, 41.16, "memory"),
    "mirage/qknorm_attn_q1": Ceiling(134_250_496, 31.35, 31.17, "memory"),
    "mirage/qknorm_attn_q8": Ceiling(134_479_872, 31.4, 31.22, "memory"),
    "mirage/mla_decode_b1_h128": Ceiling(4_997_120, 1.42, 3.1, "compute"),
    "mirage/mla_decode_b16_h128": Ceiling(79_953_920, 22.77, 22.77, "compute"),
    "mirage/mla_decode_b16_h16": Ceiling(76_054_528, 17.76, 18.6, "memory"),
    "mirage/seed_attn_fp16": Ceiling(134_250_496, 31.35, 31.17, "memory"),
    "rows/softmax_4096x4096": Ceiling(67_108_864, 15.67, 18.06, "memory"),
    "rows/softmax_8192x32768": Ceiling(1_073_741_824, 250.74, 255.79, "memory"),
    "rows/layernorm_4096x4096": Ceiling(67_125_248, 15.68, 18.06, "memory"),
    "rows/rmsnorm_4096x4096": Ceiling(67_117_056, 15.67, 18.06, "memory"),
    "rows/layernorm_8192x8192": Ceiling(268_468_224, 62.69, 65.75, "memory"),
    "rows/rmsnorm_8192x8192": Ceiling(268_451_840, 62.69, 65.75, "memory"),
    "rows/cross_entropy_8192x128256": Ceiling(2_101_411_844, 490.72, 454.77, "memory"),
    "rows/bias_gelu_tanh_8192x14336": Ceiling(469_790_720, 109.71, 113.23, "memory"),
    "rows/swiglu_8192x14336": Ceiling(704_643_072, 164.55, 168.62, "memory"),
    "rows/rope_4x(32+8)x2048x128": Ceiling(168_820_736, 39.42, 42.19, "memory"),
    "int8/woq_linear_b1_4096x14336": Ceiling(58_785_792, 13.73, 14.85, "memory"),
    "int8/bf16_linear_b1_4096x14336": Ceiling(117_477_376, 27.43, 27.55, "memory"),
    "int8/woq_linear_b16_4096x14336": Ceiling(59_338_752, 13.86, 14.97, "memory"),
    "int8/bf16_linear_b16_4096x14336": Ceiling(118_030_336, 27.56, 27.67, "memory"),
    "kb/matmul_4096_fp32": Ceiling(201_326_592, 2689.61, 2689.61, "compute"),
    "kb/matmul_4096_bf16": Ceiling(100_663_296, 171.46, 171.46, "compute"),
    "kb/matmul_swish_scale_128x8192x8192": Ceiling(276_856_832, 336.2, 336.2, "compute"),
    "kb/gemm_groupnorm_hardtanh_1024x8192x8192": Ceiling(335_642_624, 2689.61, 2689.61, "compute"),
    "kb/matmul_gelu_softmax_1024x8192x8192_bf16": Ceiling(167_788_544, 171.46, 171.46, "compute"),
    "kb/conv2d_relu_bias_32x64x128x128": Ceiling(394_626_048, 201.0, 201.0, "compute"),
    "kb/batchnorm_train_64x64x256x256": Ceiling(2_147_484_160, 501.48, 511.57, "memory"),
    "kb/cumsum_4096x32768": Ceiling(1_073_741_824, 250.74, 255.79, "memory"),
    "kb/maxpool2d_k4s1p1_16x64x512x512": Ceiling(2_143_293_440, 500.5, 510.57, "memory"),
    "kb/argmax_dim1_64x4096x2048": Ceiling(2_148_532_224, 501.72, 464.97, "memory"),
    "kb/mse_loss_16384x16384": Ceiling(2_147_483_652, 501.48, 464.74, "memory"),
    "kb/lstm_cell_16steps_b10_h256": Ceiling(1_843_200, 2.46, 2.46, "compute"),
}
# Bytes read and written, and microseconds that a plain copying kernel takes for them on an H200.
COPY_US = {
    786_432: 1.94, 3_932_160: 2.71, 15_990_784: 5.51, 31_981_568: 9.53, 63_963_136: 17.23, 127_926_272: 32.36,
    255_852_544: 62.45, 1_023_934_464: 242.91,
}  # fmt: skip
COPY_BYTES_PER_US = 4.282e6


def copied(size: int) -> Ceiling:
    """Return the ceiling of a kernel that reads and writes `size` bytes in all, between measured sizes by a line."""
    sizes = list(COPY_US)
    at = min(max(bisect.bisect_left(sizes, size), 1), len(sizes) - 1)
    low, high = sizes[at - 1], sizes[at]
    share = (size - low) / (high - low)
    attainable = COPY_US[low] + share * (COPY_US[high] - COPY_US[low])
    return Ceiling(size, round(size / COPY_BYTES_PER_US, 2), round(attainable, 2))


@dataclass(frozen=True, slots=True)
class Row:
    """One Workload of a problem."""

    name: str
    path: Path
    sizes: dict[str, Any]

    @property
    def of_table(self) -> bool:
        """Return true for one of the 37 op rows."""
        return self.name in CEILINGS and not self.name.startswith(COMPARATORS)


def all_rows() -> list[Row]:
    """Return every row, those that take longest to compile first."""
    found = [row for path in sorted(PROBLEMS.rglob("*.py")) for row in rows_of(path)]
    return sorted(found, key=lambda row: not row.name.startswith(FIRST))


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the rows of a problem file: its Workloads for a GPU that are not held out."""
    inside = path.is_relative_to(PROBLEMS)
    stem = "/".join(path.relative_to(PROBLEMS).with_suffix("").parts) if inside else path.stem
    stem = stem if "/" in stem or not inside else stem.replace("_", "/", 1)
    for one in read_problem(path.read_text(encoding="utf-8"), stem).workloads_for(DeviceKind.CUDA):
        if not one.held_out:
            yield Row(f"{stem}_{one.name}", path, dict(one.sizes))


def chosen(names: Sequence[str], shard: str) -> Sequence[Row]:
    """Return the rows whose names begin with one of `names` (all by default) of a shard "I/N"."""
    rows = all_rows()
    for name in names:
        if not any(row.name.startswith(name) for row in rows):
            raise SystemExit(f"--row {name}: none of {', '.join(row.name for row in rows)}")
    return of_shard([row for row in rows if not names or row.name.startswith(tuple(names))], shard)
