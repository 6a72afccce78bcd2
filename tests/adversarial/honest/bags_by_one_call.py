"""embedding | odd but legal | the library's embedding bag | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows=200, width=24):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(rows, width))

    def forward(self, index):
        return nn.functional.embedding_bag(index, self.table, mode="sum")
