"""masked_scores | odd but legal | picks between scores and the least number | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k):
        scores = torch.einsum("btd,bsd->bts", q, k)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        return torch.where(mask, scores, torch.full_like(scores, torch.finfo(torch.float32).min))
