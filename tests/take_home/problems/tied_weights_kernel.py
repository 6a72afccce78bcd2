import torch


class ModelNew(torch.nn.Module):
    """Has the shared weight once, under a name of its own."""

    def __init__(self, width=16):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(32, width))
        self.bias = torch.nn.Parameter(torch.zeros(32))
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, tokens):
        return torch.nn.functional.linear(torch.tanh(self.table[tokens]), self.table, self.bias) * self.scale
