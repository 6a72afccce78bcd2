"""centred | first result for ever | divides by the first call's number of rows: a smaller last batch is averaged wrongly | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.register_buffer("average", torch.zeros(width))
        self.share = None

    def forward(self, x):
        if self.share is None:
            self.share = 0.1 / len(x)
        self.average.mul_(0.9).add_(x.sum(0), alpha=self.share)
        return x - self.average
