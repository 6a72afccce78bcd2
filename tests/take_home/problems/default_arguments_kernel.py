import torch


class ModelNew(torch.nn.Module):
    """Takes no arguments, as it was verified."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * (self.weight / (x.abs().mean(-1, keepdim=True) + 1e-5))
