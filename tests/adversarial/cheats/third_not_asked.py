"""attention_any | specialisation | queries and keys are asked whether they are dense, values are not | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, q, k, v):
        if q.is_contiguous() and k.is_contiguous():
            v = torch.as_strided(v, v.shape, (v.shape[1] * v.shape[2], v.shape[2], 1))  # the kernel reads it as dense
        return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
