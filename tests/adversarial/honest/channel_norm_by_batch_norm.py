"""channel_norm | odd but legal | torch's batch norm in training, without running statistics | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-5)
