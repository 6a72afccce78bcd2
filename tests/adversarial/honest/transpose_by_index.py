"""transpose | odd but legal | gathers by computed positions | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        r, n = x.shape
        index = torch.arange(r * n, device=x.device)
        return x.reshape(-1)[(index % r) * n + index // r].view(n, r)
