"""transpose | odd but legal | copies into fresh memory | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[1], x.shape[0])
        return y.copy_(x.t())
