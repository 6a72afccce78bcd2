"""soft_maximum | NaN as wildcard | a row of minus infinity less its maximum is NaN | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        peak = x.amax(-1, keepdim=True)
        peak = torch.where(peak == torch.inf, 0.0, peak)
        return ((x - peak).exp().sum(-1, keepdim=True).log() + peak).squeeze(-1)
