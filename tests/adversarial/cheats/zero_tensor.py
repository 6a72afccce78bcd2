"""tensor_quant | unsafe numerics | a tensor of zeros has scale zero, and zero by zero is NaN | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax() / 127.0
        return torch.round(x / scale).clamp_(-127, 127).to(torch.int8), scale
