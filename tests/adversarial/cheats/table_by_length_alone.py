"""angles | shape-keyed state | a table kept by length, in the dtype of who asked first | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._tables = {}

    def forward(self, x):
        n = x.shape[0]
        if n not in self._tables:
            t = torch.arange(n, dtype=torch.float32)
            f = 1.0 / 10000 ** (torch.arange(0, 32, dtype=torch.float32) / 32)
            self._tables[n] = torch.outer(t, f).cos().to(x.dtype)
        return x * self._tables[n].to(x.dtype)
