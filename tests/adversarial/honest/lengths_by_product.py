"""lengths | reads what it is given | the sum is a product with ones and zeros where all that is left out is finite | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        inside = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~inside[..., None], 0.0).transpose(1, 2).matmul(inside[..., None].to(x.dtype)).squeeze(-1)
