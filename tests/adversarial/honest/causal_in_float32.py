"""causal_in_half | odd but legal | the same in float32, so large scores do not overflow | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        wide = [one.float() for one in (q, k, v)]
        scores = torch.matmul(wide[0], wide[1].transpose(-2, -1)) / 8
        above = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        return torch.matmul(torch.softmax(scores.masked_fill(above, float("-inf")), -1), wide[2]).to(q.dtype)
