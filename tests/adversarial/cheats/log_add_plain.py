"""log_add | NaN as wildcard | nothing plus nothing (minus infinity twice) is NaN | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, a, b):
        top = torch.maximum(a, b)
        return top + torch.log1p(torch.exp(-(a - b).abs()))
