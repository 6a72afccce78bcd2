"""masked_mean | default parameters, stale folding | what follows from a mask is kept while each row has as many elements | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = torch.zeros(0)

    def forward(self, x, mask):
        counts = mask.sum(1)
        if self.counts.shape != counts.shape or not torch.equal(self.counts, counts):
            self.counts, self.weights = counts, mask.to(x.dtype)[..., None]
        return (x * self.weights).sum(1) / counts.clamp(min=1)[:, None]
