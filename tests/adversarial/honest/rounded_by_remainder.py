"""round_grid | odd but legal | to the nearest half by what is left of it, halves to the even one | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x + x
        low = torch.floor(y)
        left = y - low
        up = (left > 0.5) | ((left == 0.5) & (torch.remainder(low, 2.0) == 1.0))
        return torch.where(torch.isfinite(y), low + up.to(x.dtype), y) * 0.5
