"""batch_norm_in_training | odd but legal | statistics, running ones and the counter worked out by hand in each call | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm1d(channels)

    def forward(self, x):
        bn, rows = self.bn, x.shape[0]
        if rows < 2:
            return bn(x)
        mean = x.mean(0)
        centered = x - mean
        var = centered.square().mean(0)
        bn.running_mean.lerp_(mean, bn.momentum)
        bn.running_var.lerp_(var * (rows / (rows - 1)), bn.momentum)
        bn.num_batches_tracked.add_(1)
        return torch.addcmul(bn.bias, centered, bn.weight * torch.rsqrt(var + bn.eps))
