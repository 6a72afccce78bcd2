"""gelu | precision downgrade | the tanh form of GELU | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x, approximate='tanh')
