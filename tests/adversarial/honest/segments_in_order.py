"""segments | reads what it is given | segments follow one another, as bounds do | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, bounds):
        lengths = bounds[1:] - bounds[:-1]
        owner = torch.arange(len(lengths), device=x.device).repeat_interleave(lengths, output_size=x.shape[0])
        sums = torch.zeros(len(lengths), x.shape[1], dtype=torch.float64, device=x.device)
        return sums.index_add_(0, owner, x.double()).to(x.dtype)
