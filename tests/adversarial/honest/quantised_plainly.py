"""quantise | odd but legal | the reference itself | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / 127
        return torch.round(x / scale).to(torch.int8), scale
