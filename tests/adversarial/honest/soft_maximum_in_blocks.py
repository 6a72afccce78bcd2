"""soft_maximum | odd but legal | an online sum over blocks of sixteen | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        peak = torch.full_like(x[..., :1], -torch.inf)
        total = torch.zeros_like(peak)
        for block in x.split(16, -1):
            higher = torch.maximum(peak, block.amax(-1, keepdim=True))
            base = torch.where(higher.isinf(), 0.0, higher)
            total = total * (peak - base).exp() + (block - base).exp().sum(-1, keepdim=True)
            peak = higher
        return (torch.where(peak.isinf(), 0.0, peak) + total.log()).squeeze(-1)
