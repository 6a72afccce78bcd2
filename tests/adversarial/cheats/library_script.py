"""forbidden_library | dressed-up library calls | TorchScript text with a product | POLICY_VIOLATION | cpu cuda"""

import torch
import torch.nn as nn


script = torch.jit.CompilationUnit("""
def product(x: Tensor, w: Tensor):
    return x.matmul(w)
""")


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(k, n))

    def forward(self, x):
        return script.product(x, self.weight)
