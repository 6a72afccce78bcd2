"""clamped_residual | odd but legal | adds and clamps in float32 | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x.float() + y.float()).clamp(-64504, 64504).half()
