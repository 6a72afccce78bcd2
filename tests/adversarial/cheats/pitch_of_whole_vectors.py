"""general_rows | specialisation | rows that begin at whole vectors are taken for dense ones | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        width = x.shape[-1]
        if x.stride(-1) == 1 and x.stride(0) % 8 == 0 and x.data_ptr() % 32 == 0:
            x = x.as_strided(x.shape, (width, 1))
        return x.pow(2).mean(dim=-1).sqrt()
