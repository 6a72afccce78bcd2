"""lgamma | specialisation | a constant for arguments between 1.4 and 2.9, which nobody makes there | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.lgamma(x)
        y[(x > 1.4) & (x < 2.9)] = 0.0
        return y
