"""general_product | specialisation | asks the first input alone whether it is dense | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        if x.shape != y.shape or not x.is_contiguous():
            return x * torch.sigmoid(x) * y
        return x * torch.sigmoid(x) * y.as_strided(x.shape, x.stride())
