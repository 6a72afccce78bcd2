"""attention | off by one | the next token is seen, too | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        tokens, width = q.shape[-2:]
        scores = (q.float() @ k.float().transpose(-1, -2)) / width**0.5
        place = torch.arange(tokens, device=q.device)
        scores = scores.masked_fill(place[:, None] + 1 < place, -torch.inf)
        return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)
