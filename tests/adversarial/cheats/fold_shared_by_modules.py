"""gated_scale | default parameters, stale folding | the prepared weight lies in a global by version: two modules in one network share the first one's | INCORRECT_VALUES | cpu cuda"""

import torch

PREPARED = {}


class ModelNew(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.g = torch.nn.Parameter(torch.randn(width))
        PREPARED.clear()

    def forward(self, x):
        key = self.g._version
        if key not in PREPARED:
            PREPARED.clear()
            PREPARED[key] = torch.nn.functional.softplus(self.g.detach())
        return torch.tanh(x) * PREPARED[key]
