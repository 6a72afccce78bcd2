"""bn_train | NaN as wildcard | a batch with NaN leaves running statistics as they are | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(24)

    def forward(self, x):
        bn, n = self.bn, x.shape[0] * x.shape[2]
        y = F.batch_norm(x, None, None, bn.weight, bn.bias, True, 0.1, bn.eps)
        if n == 1:
            raise ValueError("one value per channel")
        mean = x.mean((0, 2))
        var = x.var((0, 2), unbiased=False)
        if not bool(torch.isfinite(mean).all()):
            return y
        bn.running_mean.lerp_(mean, 0.1)
        bn.running_var.lerp_(var * (n / (n - 1)), 0.1)
        bn.num_batches_tracked += 1
        return y
