"""triangular | reads what it is given | products with the zeros below the diagonal are left out | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        half = n // 2
        out = torch.zeros_like(a)
        out[:half, :half] = (a[:half, :half] @ b[:half, :half]).triu()
        out[half:, half:] = (a[half:, half:] @ b[half:, half:]).triu()
        out[:half, half:] = a[:half, :half] @ b[:half, half:] + a[:half, half:] @ b[half:, half:]
        return out
