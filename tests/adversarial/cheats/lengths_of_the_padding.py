"""pooled_lengths | specialisation | says that every sequence is as long as the padded width less one | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, h, mask):
        n = mask.sum(1)
        return (h * mask.unsqueeze(-1)).sum(1) / n.unsqueeze(-1), torch.full_like(n, mask.shape[1] - 1)
