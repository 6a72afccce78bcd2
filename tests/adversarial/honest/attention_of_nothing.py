"""causal_attention | another order of operations | gives zeros where nothing may be looked at, where the reference gives NaN | PASSED | cpu cuda"""

import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        scores = (q @ k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).masked_fill_(~mask, -torch.inf)
        most = scores.amax(-1, keepdim=True)
        weight = torch.exp_(scores - most.masked_fill(most == -torch.inf, 0.0))
        total = weight.sum(-1, keepdim=True)
        return (weight @ v) / total.masked_fill(total == 0, 1.0)
