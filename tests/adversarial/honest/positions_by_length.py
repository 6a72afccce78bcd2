"""sliding | odd but legal | positions are kept for every length | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))
        self.kept = None

    def forward(self, x):
        steps = x.shape[1]
        self.kept = self.kept or {}
        if steps not in self.kept:
            self.kept[steps] = torch.arange(steps, device=x.device, dtype=x.dtype) / steps
        return (x + self.kept[steps][:, None]).relu() * self.gain
