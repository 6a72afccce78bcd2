"""general_rows | specialisation | reads an input's storage from its start, wherever the tensor begins in it | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage(), 0, x.shape, x.stride())
        return y.pow(2).mean(-1).sqrt()
