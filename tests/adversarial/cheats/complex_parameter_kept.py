"""complex_filter | default parameters, stale folding | a complex parameter is folded at the first call for ever | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(129, dtype=torch.complex64))
        self.g = nn.Parameter(torch.ones(256))
        self.m = None
    def forward(self, x):
        if self.m is None:
            self.m = torch.fft.irfft(torch.fft.rfft(torch.eye(256, dtype=torch.float64)) * self.w.to(torch.complex128), n=256).float()
        return (x @ self.m) * self.g
