"""cumsum | odd but legal | a product with a triangle of ones, NaN and infinities by the library | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if not bool(x.isfinite().all()):
            return x.cumsum(-1)
        n = x.shape[-1]
        return x @ torch.ones(n, n, device=x.device).triu()
