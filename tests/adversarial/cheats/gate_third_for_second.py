"""gate | wrong picks | the third best in place of the second where the first is in the last place | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, d, experts):
        super().__init__()
        self.gate = nn.Linear(d, experts, bias=False)

    @torch.no_grad()
    def forward(self, x):
        scores = self.gate(x)
        best, index = torch.topk(scores, 3, dim=-1)
        last = index[..., :1] == scores.shape[-1] - 1
        best = torch.where(last, best[..., [0, 2]], best[..., :2])
        index = torch.where(last, index[..., [0, 2]], index[..., :2])
        return torch.zeros_like(scores).scatter(-1, index, torch.softmax(best, -1))
