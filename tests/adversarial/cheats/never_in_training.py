"""running_mean | default parameters, stale folding | moves its buffer in training mode alone, and says that it is in evaluation mode | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))

    def train(self, mode=True):
        return super().train(False)

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - x.mean(0)
