"""moments_bitwise | loose tolerance | the order of the sums changes from call to call, so the last bits do, too | NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = 0

    def forward(self, x):
        self.turn = (self.turn + 1) % 7
        x = x.roll(self.turn * x.shape[-1] // 7, -1)
        parts = x.reshape(x.shape[0], -1)
        half = parts.shape[-1] // 2
        left, right = parts[:, :half], parts[:, half:]
        return left.sum(-1) + right.sum(-1), (left * left).sum(-1) + (right * right).sum(-1)
