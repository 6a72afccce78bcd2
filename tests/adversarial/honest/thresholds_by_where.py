"""thresholds | odd but legal | comparisons in another order, the sign by two of them | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sign = (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
        kept = torch.where(x <= 0.5, -1.0, x)
        return torch.where(x.isnan(), x, kept + sign)
