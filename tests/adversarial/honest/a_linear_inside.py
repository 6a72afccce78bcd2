"""linear | odd but legal | a submodule holds the parameters: same order, longer names | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.layer = nn.Linear(k, n)

    def forward(self, x):
        return self.layer(x)
