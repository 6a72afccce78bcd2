"""norm_split | specialisation | few long rows are split in pieces of 512; the mean is that of the last piece | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[0] <= 16 and x.shape[1] > 1024:  # decode: split each row
            squares = torch.stack([part.pow(2).sum(-1) for part in x.split(512, -1)])
            total = squares[0] + squares[-1] * (len(squares) - 1)
            return x * torch.rsqrt(total.unsqueeze(-1) / x.shape[1] + 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
