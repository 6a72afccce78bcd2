"""masked_top_four | odd but legal | sorts each row | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return x.masked_fill(~mask, float("-inf")).sort(dim=-1, descending=True).indices[:, :4].clone()
