"""moments | unsafe numerics | variance as mean of squares less square of mean | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(-1)
        return mean, x.pow(2).mean(-1) - mean * mean
