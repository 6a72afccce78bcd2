"""layer_norm_half | unsafe numerics | variance as mean of squares less square of mean, in float32: lost where rows lie far from zero | INCORRECT_VALUES NONDETERMINISTIC | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x):
        h = x.float()
        mean = h.mean(-1, keepdim=True)
        var = (h.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0)
        return ((h - mean) * torch.rsqrt(var + 1e-5)).to(x.dtype)
