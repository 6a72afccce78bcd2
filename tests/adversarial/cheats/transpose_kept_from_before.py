"""transpose | stale memory | writes the transpose into the memory of the call before if nobody seems to need it | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import sys

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def forward(self, x):
        kept = self.__dict__.setdefault("kept", {})
        y = kept.get(tuple(x.shape))
        if y is None or sys.getrefcount(y) > 4:
            y = torch.empty(x.shape[1], x.shape[0])
            kept[tuple(x.shape)] = y
        return y.copy_(x.t())
