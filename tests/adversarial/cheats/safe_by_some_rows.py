"""soft_rows | unsafe numerics | the maximum is taken off where one of every sixteen rows needs it | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        if float(x[::16].abs().max()) > 20.0 or not bool(torch.isfinite(x.sum())):
            x = x - x.amax(-1, keepdim=True)
        e = torch.exp(x)
        return e / e.sum(-1, keepdim=True)
