"""tempered | NaN as wildcard | rows with NaN become zeros | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x, temperature):
        z = x / temperature
        bad = x.isnan().any(-1, keepdim=True)
        p = torch.softmax(torch.where(bad, torch.zeros_like(z), z), -1)
        return torch.where(bad & ~temperature.isnan(), torch.zeros_like(p), torch.where(temperature.isnan(), temperature, p))
