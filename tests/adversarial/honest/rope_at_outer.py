"""rope_at | odd but legal | angles by an outer product, rotated as complex numbers would be | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = torch.pow(10000.0, -torch.arange(half, device=x.device, dtype=x.dtype) / half)
        angles = torch.outer(positions.to(x.dtype), rates)[None, :, None, :]
        c, s = angles.cos(), angles.sin()
        out = torch.empty_like(x)
        a, b = x[..., :half], x[..., half:]
        torch.sub(a * c, b * s, out=out[..., :half])
        torch.add(b * c, a * s, out=out[..., half:])
        return out
