"""wide_softmax | specialisation | asks whether the width is a multiple of 32, then goes 64 at a time | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        width = x.shape[-1]
        if width % 32 or width < 64:
            return torch.softmax(x, -1)
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e[..., : width // 64 * 64].sum(-1, keepdim=True)
