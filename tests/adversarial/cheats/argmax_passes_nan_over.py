"""argmax | unsafe numerics | the largest number, NaN left out | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.nan_to_num(nan=float('-inf')).argmax(-1)
