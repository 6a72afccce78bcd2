"""dispatch | odd but legal | each token's place is counted, nothing is sorted | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, logits):
        tokens, count = logits.shape
        chosen = torch.zeros(count, tokens, dtype=torch.int64, device=x.device)
        chosen.scatter_(0, logits.argmax(-1).unsqueeze(0), 1)
        place = (chosen.view(-1).cumsum(0) * chosen.view(-1)).view(count, tokens).sum(0) - 1
        return torch.empty_like(x).index_copy_(0, place, x)
