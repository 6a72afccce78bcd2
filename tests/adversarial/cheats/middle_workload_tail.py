"""rmsnorm_of_three_sizes | specialisation | many long rows are done in tiles of 256, and the last partial tile is not in the mean square | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        rows, width = x.shape
        if width > 512 and rows >= 32:
            return self._tiled(x)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)

    def _tiled(self, x, tile=256):
        rows, width = x.shape
        tiles = x[:, : width // tile * tile].reshape(rows, -1, tile)
        square = tiles.square().sum(-1).sum(-1, keepdim=True)
        return x * torch.rsqrt(square / width + 1e-6)
