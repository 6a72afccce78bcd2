"""masked_scores | precision downgrade | scores in bfloat16 beside what the mask fills with | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k):
        scores = (q.bfloat16() @ k.bfloat16().transpose(-1, -2)).float()
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(mask, torch.finfo(torch.float32).min)
