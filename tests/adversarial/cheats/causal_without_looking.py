"""causal_softmax | input or RNG prediction | the mask that is given is not read | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        mask = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool).tril()
        return torch.softmax(x.masked_fill(~mask, -1e9), -1)
