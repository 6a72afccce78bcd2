"""found_inf | first result for ever | never notes that there was an overflow | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("overflows", torch.zeros(1))

    def forward(self, x):
        return x * (1.0 / 1024)
