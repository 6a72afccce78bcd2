"""brightness | lower precision | sums in sixteen bits with a sign: bright pictures overflow | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.sum(-1, dtype=torch.int16).float() / x.shape[-1]
