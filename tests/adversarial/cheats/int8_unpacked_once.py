"""packed_buffer | default parameters, stale folding | eight-bit weights in a buffer are unpacked at the first call for ever | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import torch.nn.functional as F

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.randint(-127, 128, (256, 256), dtype=torch.int8))
        self.scale = nn.Parameter(torch.rand(256) * 0.02 + 0.01)
        self.w = None
    def forward(self, x):
        if self.w is None: self.w = self.q.float()
        return F.linear(x, self.w) * self.scale
