"""A bias and indices that overlap themselves."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, bias, indices):
        return torch.gather(x + bias, 1, indices)


def get_inputs(rows=8):
    indices = torch.randint(0, 16, (1, 4)).expand(rows, 4)
    return [torch.randn(rows, 16), torch.randn(16).expand(rows, 16), indices]
