"""embedding | odd but legal | index_add over repeated rows | PASSED | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, index):
        rows = self.table[index.reshape(-1)]
        bag = torch.arange(index.shape[0]).repeat_interleave(index.shape[1])
        return torch.zeros(index.shape[0], rows.shape[1]).index_add_(0, bag, rows)
