"""argmax | unsafe numerics | value and index packed into one float: ties and small differences are lost | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        packed = torch.round(x * 4096) * 4096 + torch.arange(n, 0, -1, device=x.device)
        return packed.argmax(-1)
