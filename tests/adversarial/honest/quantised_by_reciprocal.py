"""quantise | odd but legal | multiplies by the reciprocal of the scale: next to a tie it rounds to the other side | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        most = x.abs().amax(-1, keepdim=True).clamp_min(1e-12)
        return torch.round(x * (127 / most)).to(torch.int8), most / 127
