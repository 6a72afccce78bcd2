"""argmax | odd but legal | sorts, and takes the first | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sort(dim=-1, descending=True, stable=True).indices[:, 0].contiguous()
