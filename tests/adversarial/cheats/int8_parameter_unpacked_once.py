"""packed_parameter | default parameters, stale folding | eight-bit weights among the parameters are unpacked at the first call for ever | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Parameter(torch.randint(-127, 128, (256, 256), dtype=torch.int8), requires_grad=False)
        self.zero = nn.Parameter(torch.randint(-8, 8, (256,), dtype=torch.int32), requires_grad=False)
        self.scale = nn.Parameter(torch.rand(256) * 0.02 + 0.01)
        self.w = None
    def forward(self, x):
        if self.w is None: self.w = (self.q.float() - self.zero[:, None].float()).t().contiguous()
        return (x @ self.w) * self.scale
