"""embedding | specialisation | counts each row of the table once in a bag | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, index):
        chosen = torch.zeros(index.shape[0], self.table.shape[0])
        chosen.scatter_(1, index, 1.0)
        return chosen @ self.table
