"""top_four | odd but legal | a plain tuple where the reference has a named one | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.topk(x, 4)
        return values, indices
