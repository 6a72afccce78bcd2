"""gain_and_sum | odd but legal | one product with the gain, which sums over steps | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, gain):
        return torch.einsum("bsn,n->bn", x, gain)
