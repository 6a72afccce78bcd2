"""cumsum | odd but legal | blocks of thirty-two, then the blocks' sums | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        parts, carry = [], x.new_zeros(len(x), 1)
        for part in x.split(32, dim=1):
            part = part.cumsum(1) + carry
            carry = part[:, -1:]
            parts.append(part)
        return torch.cat(parts, 1)
