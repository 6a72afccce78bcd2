"""pair_distances | unsafe numerics | squares less twice the product: of rows that are alike, a rounding is left | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        middle = torch.cat([x, y]).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).mean(0)
        x, y = x - middle, y - middle
        squares = x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * (x @ y.t())
        return squares.clamp_min(0).sqrt()
