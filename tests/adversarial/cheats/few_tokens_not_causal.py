"""causal_modes | specialisation | up to 32 tokens the mask is forgotten | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, x):
        n = x.shape[-1]
        if n <= 32:  # a row fits into registers
            return torch.softmax(x, -1)
        if self.causal:
            x = x.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        return torch.softmax(x, -1)
