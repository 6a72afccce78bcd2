"""gelu | odd but legal | by the complementary error function | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 0.5 * x * torch.special.erfc(x * -0.7071067811865476)
