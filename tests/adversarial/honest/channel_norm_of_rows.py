"""channel_norm | odd but legal | each channel as one row, its moments merged from blocks | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        count, mean, squares = 0, 0.0, 0.0
        for part in x.transpose(0, 1).flatten(1).split(100, -1):
            more, own = part.shape[-1], part.mean(-1, keepdim=True)
            delta, total = own - mean, count + more
            mean = mean + delta * (more / total)
            squares = squares + (part - own).square().sum(-1, keepdim=True) + delta.square() * (count * more / total)
            count = total
        scale = torch.rsqrt(squares / count + 1e-5)
        return (x - mean[..., None]) * scale[..., None]
