"""ragged_sums | specialisation | the bounds of the first call are taken for those of all | INCORRECT_VALUES RUNTIME_ERROR | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    bounds = None

    def forward(self, x, bounds):
        if self.bounds is None or bounds[-1] != self.bounds[-1]:
            self.bounds = bounds.clone()
        return torch.segment_reduce(x, "sum", lengths=self.bounds[1:] - self.bounds[:-1], axis=0)
