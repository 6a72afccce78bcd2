"""nearest_codes | odd but legal | without the rows' own squares, which change no order | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codes = torch.nn.Parameter(torch.randn(codes, width))

    def forward(self, x):
        nearest = self.codes[torch.addmm(self.codes.pow(2).sum(-1), x, self.codes.t(), alpha=-2).argmin(-1)]
        return nearest, (nearest - x).pow(2).mean()
