"""masked_mean | odd but legal | what a mask counts is kept, and looked up by the whole mask | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x, mask):
        m = mask.to(x.dtype)
        if self.mask is None or self.mask.shape != mask.shape or not bool((self.mask == mask).all()):
            self.mask, self.count = mask.clone(), m.sum(1, keepdim=True).clamp(min=1)
        count = self.count.to(x.dtype)
        return (x * m[..., None]).sum(1) / count
