"""masked_scores | unsafe numerics | minus infinity for the least number | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k):
        scores = q @ k.transpose(-1, -2)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(mask, float("-inf"))
