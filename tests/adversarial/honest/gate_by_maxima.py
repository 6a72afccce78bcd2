"""gate | odd but legal | two maxima in place of topk, softmax of two as a sigmoid of their difference: other picks where all tie | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, d, experts):
        super().__init__()
        self.gate = nn.Linear(d, experts, bias=False)

    @torch.no_grad()
    def forward(self, x):
        scores = x @ self.gate.weight.t()
        first, i = scores.max(-1, keepdim=True)
        rest = scores.scatter(-1, i, float("-inf"))
        second, j = rest.max(-1, keepdim=True)
        # Where all the rest is -inf, max may point at i again; any other place holds the same score.
        j = torch.where(j == i, (i + 1) % scores.shape[-1], j)
        nan = first - first  # as softmax has it, where the best is infinite or NaN
        y = torch.zeros_like(scores)
        return y.scatter_(-1, i, torch.sigmoid(first - second) + nan).scatter_(-1, j, torch.sigmoid(second - first) + nan)
