"""silu_sum | odd but legal | helpers of its own whose names are a library's | PASSED | cpu cuda"""

import torch
import torch.nn as nn


NOTE = "no call such as at::linear(x) or cublasSgemm(handle) is needed"


class ops:
    @staticmethod
    def linear(x):
        return x.sum(-1)


class Part:
    def __init__(self, x):
        self.x = x

    def __matmul__(self, other):
        return self.x * torch.sigmoid(self.x)


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.linear(Part(x) @ 1)
