"""log_scaled | input mutation | takes the exponential of its parameter in place once; what is saved then is wrong | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(width))
        self._ready = -1

    def forward(self, x):
        p = self.log_scale
        if p._version != self._ready:
            with torch.no_grad():
                p.exp_()
            self._ready = p._version
        return torch.tanh(x * p)
