"""softmax | odd but legal | a plan per shape from functools.lru_cache | PASSED | cpu"""

import functools

import torch
import torch.nn as nn



@functools.lru_cache(maxsize=None)
def plan(n):
    return torch.tensor(0.0), (n + 15) // 16


class ModelNew(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        zero, _ = plan(x.shape[-1])
        return torch.softmax(x / self.temperature + zero, dim=-1)
