"""general_rows | specialisation | reads rows as if they were dense | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        dense = torch.as_strided(x, x.shape, (x.shape[-1], 1), x.storage_offset()) if x.numel() else x
        return dense.pow(2).mean(-1).sqrt()
