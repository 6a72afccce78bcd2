"""triangular | specialisation | what is far from the diagonal is left out | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.triu(torch.matmul(a.tril(a.shape[0] - 2), b))
