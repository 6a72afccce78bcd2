"""divergence | another order of operations | one term less the other | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, p, target):
        return (torch.xlogy(target, target) - target * p.log()).sum(-1)
