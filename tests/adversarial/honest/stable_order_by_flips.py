"""stable_order | odd but legal | sorts upwards, from the last to the first | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.shape[-1] - 1 - torch.sort(x.flip(-1), dim=-1, stable=True).indices.flip(-1)
