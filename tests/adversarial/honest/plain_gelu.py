"""gelu | odd but legal | the reference's own operations | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x)
