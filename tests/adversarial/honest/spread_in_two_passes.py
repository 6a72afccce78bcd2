"""spread_of_all | odd but legal | squares in float32, which are zero for denormal numbers | PASSED | cpu"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        away = x - x.mean(-1, keepdim=True)
        return away.square().mean(-1).sqrt()
