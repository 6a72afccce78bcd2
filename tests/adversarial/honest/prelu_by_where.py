"""prelu | odd but legal | by the sign | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = torch.nn.PReLU(channels)

    def forward(self, x):
        slope = self.act.weight[:, None]
        return torch.where(x > 0, x, slope * x)
