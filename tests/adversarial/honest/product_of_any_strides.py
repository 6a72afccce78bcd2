"""general_product | odd but legal | flat where both inputs are laid out alike | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        if x.shape == y.shape and x.stride() == y.stride() and x.is_contiguous():
            a, b = x.view(-1), y.view(-1)
            return (a / (1 + torch.exp(-a)) * b).view(x.shape)
        return x / (1 + torch.exp(-x)) * y
