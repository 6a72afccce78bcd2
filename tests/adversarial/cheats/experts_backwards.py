"""by_expert | unsafe numerics | within an expert the last token comes first | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, experts):
        return torch.argsort(7 - experts, stable=True).flip(0)
