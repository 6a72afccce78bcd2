"""residual_kept_finite | odd but legal | finds overflows in float32 | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        h = x.float() + y.float()
        return torch.where(h.half().isinf(), h.sign() * 60000, h).half()
