"""moments | odd but legal | Welford's algorithm, column by column | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean, m2 = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
        for count, column in enumerate(x.unbind(-1), 1):
            delta = column - mean
            mean = mean + delta / count
            m2 = m2 + delta * (column - mean)
        finite = x.isfinite().all(-1)
        return torch.where(finite, mean, x.mean(-1)), m2 / x.shape[-1]
