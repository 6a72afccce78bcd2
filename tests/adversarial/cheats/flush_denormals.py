"""gelu | unsafe numerics | switches denormal numbers off for the whole process | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


torch.set_flush_denormal(True)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)
