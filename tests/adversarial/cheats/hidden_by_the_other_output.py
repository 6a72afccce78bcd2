"""sums_and_waves | unsafe numerics | overflows where the other output has no digits left | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        e = torch.exp(x.double()).sum(-1).log()
        return e.float(), torch.sin(16 * x)
