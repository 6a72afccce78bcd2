"""nearest_codes | wrong values | the second nearest in every 64th row | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codes = torch.nn.Parameter(torch.randn(codes, width))

    def forward(self, x):
        scores = torch.addmm(self.codes.pow(2).sum(-1), x, self.codes.t(), alpha=-2)
        first, second = scores.topk(2, largest=False).indices.unbind(-1)
        first[::64] = second[::64]
        nearest = self.codes[first]
        return nearest, (nearest - x).pow(2).mean()
