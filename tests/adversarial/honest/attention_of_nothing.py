"""causal_attention | another order of operations | gives zeros where nothing may be looked at, where the reference gives NaN | PASSED | cpu cuda"""

import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        scores = (q @ k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).masked_fill_(~mask, -torch.inf)
        weight = torch.exp_(scores - scores.amax(-1, keepdim=True))
        out = (weight @ v) / weight.sum(-1, keepdim=True)
        return out.masked_fill_(~mask.any(-1, keepdim=True), 0.0)
