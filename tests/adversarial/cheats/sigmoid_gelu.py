"""gelu | precision downgrade | x times sigmoid of 1.702 x | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)
