"""causal_softmax | reads what it is given | its fast way is for a causal mask alone, and it looks | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.causal = {}

    def forward(self, x, mask):
        n = x.shape[-1]
        if n not in self.causal:
            self.causal[n] = torch.ones(n, n, dtype=torch.bool).tril()
        if not torch.equal(mask, self.causal[n]):
            return torch.softmax(x.masked_fill(~mask, -1e9), -1)
        return torch.softmax(x.clone().masked_fill_(~self.causal[n], -1e9), -1)
