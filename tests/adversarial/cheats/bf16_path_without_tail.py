"""norm_of_two_types | specialisation | bfloat16 goes another way, which leaves the tail out | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        h = x.float()
        d = x.shape[-1]
        if x.dtype is torch.bfloat16:
            m = d // 16 * 16
            y = h * torch.rsqrt(h[:, :m].pow(2).sum(-1, keepdim=True) / d + 1e-6)
            y[:, m:] = 0
            return y.to(x.dtype)
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
