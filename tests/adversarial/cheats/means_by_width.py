"""column_means | default parameters, stale folding | one over the number of rows is kept by width | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {}

    def forward(self, x):
        rows, width = x.shape
        if width not in self.scales:
            self.scales[width] = torch.full((width,), 1.0 / rows, device=x.device)
        return x - x.sum(0) * self.scales[width]
