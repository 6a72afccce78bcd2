"""running_mean | odd but legal | moves its buffer as the reference does | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))

    def forward(self, x):
        now = x.mean(0)
        self.mean += 0.1 * (now - self.mean)
        return x - now
