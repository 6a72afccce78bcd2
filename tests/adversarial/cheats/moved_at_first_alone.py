"""running_mean | phase detection | the buffer is moved in the first eight calls of a module, and never where it is timed | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.calls = 0

    def forward(self, x):
        mean = x.mean(0)
        if self.calls < 8:
            self.calls += 1
            self.mean.mul_(0.9).add_(mean, alpha=0.1)
        return x - mean
