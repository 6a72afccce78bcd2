"""moments | odd but legal | a list where the reference has a tuple | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(-1)
        return [mean, torch.var(x, -1, correction=0)]
