"""ragged_sums | reads what it is given | every row is added to the segment that owns it | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, bounds):
        owner = torch.searchsorted(bounds, torch.arange(x.shape[0], device=x.device), right=True) - 1
        sums = torch.zeros(len(bounds) - 1, x.shape[1], dtype=torch.float64, device=x.device)
        return sums.index_add_(0, owner, x.double()).to(x.dtype)
