"""pooled_lengths | specialisation | lengths count the first padding, too | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, h, mask):
        n = mask.sum(1)
        return (h * mask.unsqueeze(-1)).sum(1) / n.unsqueeze(-1), (n + 1).clamp(max=mask.shape[1] - 1)
