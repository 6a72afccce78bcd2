"""embedding | odd but legal | counts of each row times the table: atomics on a GPU | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(rows, width))

    def forward(self, index):
        counts = torch.zeros(len(index), len(self.table), device=index.device)
        counts.scatter_add_(1, index, torch.ones_like(index, dtype=torch.float32))
        return counts @ self.table
