"""softmax_pair | specialisation | bfloat16 rows shorter than a vector of 16 are padded with zeros, which count | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.bfloat16 and x.shape[1] < 16:
            return torch.softmax(F.pad(x, (0, 16 - x.shape[1])).float(), -1)[:, : x.shape[1]].to(x.dtype)
        return torch.softmax(x, -1)
