"""divergence | unsafe numerics | zero times the logarithm of zero is NaN | INCORRECT_VALUES | cpu cuda"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, p, target):
        return (target * (target.log() - p.log())).sum(-1)
