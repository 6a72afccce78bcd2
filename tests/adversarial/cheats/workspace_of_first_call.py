"""sliding | shape-keyed state | a workspace as large as the first call's | INCORRECT_VALUES RUNTIME_ERROR | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))
        self.kept = None

    def forward(self, x):
        steps = x.shape[1]
        if self.kept is None:
            self.kept = torch.empty(x.shape, device=x.device)
        rows = min(len(x), len(self.kept))
        steps = min(steps, self.kept.shape[1])
        out = torch.zeros_like(x)
        part = self.kept[:rows, :steps]
        position = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)[:steps] / x.shape[1]
        torch.add(x[:rows, :steps], position[:, None], out=part)
        out[:rows, :steps] = part.relu() * self.gain
        return out
