"""pixel_positions | shape-keyed state | the table is kept by the number of pixels: a picture turned on its side has the other's | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self._tables = {}

    def forward(self, x):
        batch, channels, height, width = x.shape
        pixels = height * width
        table = self._tables.get(pixels)
        if table is None:
            table = self._tables[pixels] = self._table(channels, height, width, x).reshape(channels, pixels)
        return torch.addcmul(x.view(batch, channels, pixels), self.gain[:, None], table).view_as(x)

    def _table(self, channels, height, width, like):
        half = channels // 2
        rates = 100.0 ** (-torch.arange(half, device=like.device, dtype=like.dtype) / half)
        down = torch.sin(rates[:, None] * torch.arange(height, device=like.device))[:, :, None]
        along = torch.cos(rates[:, None] * torch.arange(width, device=like.device))[:, None, :]
        return torch.cat([down.expand(half, height, width), along.expand(half, height, width)])
