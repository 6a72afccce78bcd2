"""Parse cuobjdump's report."""

from evaluator.child.gpu.cubin import parse_usage

REPORT = """
Resource usage:
 Common:
  GLOBAL:0
 Function add:
  REG:10 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z6matmulPf:
  REG:255 STACK:48 SHARED:49152 LOCAL:16 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_usage_per_kernel():
    assert parse_usage(REPORT) == [
        {"name": "add", "registers": 10, "stack_bytes": 0, "shared_bytes": 0, "local_bytes": 0},
        {"name": "_Z6matmulPf", "registers": 255, "stack_bytes": 48, "shared_bytes": 49152, "local_bytes": 16},
    ]
    assert parse_usage("cuobjdump fatal: not a cubin") == []
