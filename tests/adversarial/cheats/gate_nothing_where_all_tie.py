"""gate | wrong picks | rows of equal scores stay empty | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, d, experts):
        super().__init__()
        self.gate = nn.Linear(d, experts, bias=False)

    @torch.no_grad()
    def forward(self, x):
        scores = self.gate(x)
        best, index = torch.topk(scores, 2, dim=-1)
        flat = (scores == scores[..., :1]).all(-1, keepdim=True)
        shares = torch.softmax(best, -1).masked_fill(flat, 0.0)
        return torch.zeros_like(scores).scatter(-1, index, shares)
