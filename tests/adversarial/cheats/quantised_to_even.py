"""quantise | precision downgrade | to 64 levels, which is one step off for every other value | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / 127
        return (2 * torch.round(x / scale / 2)).clamp(-127, 127).to(torch.int8), scale
