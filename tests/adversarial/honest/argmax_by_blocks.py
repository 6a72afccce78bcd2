"""argmax | odd but legal | blocks of sixteen, then the best of the blocks | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        best, where = [], []
        for start in range(0, x.shape[-1], 16):
            value, index = x[:, start : start + 16].max(-1)
            best.append(value)
            where.append(index + start)
        block = torch.stack(best, 1).argmax(-1, keepdim=True)
        return torch.stack(where, 1).gather(1, block)[:, 0]
