"""argmax | odd but legal | the last of equal largest elements | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        last = n - 1 - x.flip(-1).argmax(-1)
        return last
