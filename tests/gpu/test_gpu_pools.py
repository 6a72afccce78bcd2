"""torch's compiler, loaded before the fork: the child has a GPU, and compiles."""

from __future__ import annotations

import os
import subprocess
import sys

from evaluator.devices.compilers import compiler_environment
from evaluator.types import DeviceKind

FORK = """
import os
import torch
torch.set_num_threads(1)
import evaluator.child.gpu.compiler
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
x = torch.randn(64, 64, device="cuda")
torch.testing.assert_close(torch.compile(lambda a: torch.softmax(a * 2, -1))(x), torch.softmax(x * 2, -1))
os._exit(0)
"""


def test_a_child_of_the_loaded_compiler_compiles() -> None:
    environment = {**os.environ, **compiler_environment(DeviceKind.CUDA)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], env=environment, timeout=120, check=False)
    assert done.returncode == 0
