"""error_tails | odd but legal | computed in float64 | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.special.erfc(x.double()).float()
