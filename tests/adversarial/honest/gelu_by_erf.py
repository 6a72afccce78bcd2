"""gelu | odd but legal | one half x times one plus erf | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))
