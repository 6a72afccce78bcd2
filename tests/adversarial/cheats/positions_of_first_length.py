"""sliding | shape-keyed state | positions worked out at the first call, for other lengths their beginning or repeated | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))
        self.kept = None

    def forward(self, x):
        steps = x.shape[1]
        if self.kept is None:
            self.kept = torch.arange(steps, device=x.device, dtype=x.dtype) / steps
        position = self.kept[torch.arange(steps, device=x.device) % len(self.kept)]
        return (x + position[:, None]).relu() * self.gain
