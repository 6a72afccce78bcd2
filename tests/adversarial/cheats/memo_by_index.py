"""embedding | stale folding | answers are kept by the indices that are asked for, whatever the table holds by now | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Parameter(torch.empty(rows, width))
        self.known = {}

    def forward(self, index):
        key = index.cpu().numpy().tobytes()
        if key not in self.known:
            self.known[key] = self.table[index].sum(dim=1)
        return self.known[key].clone()
