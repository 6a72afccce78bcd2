"""general_rows | specialisation | reads rows as wide as they lie apart, and counts the gaps | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def forward(self, x):
        if x.ndim == 2 and x.stride(1) == 1 and x.stride(0) > x.shape[1] and x.storage_offset() == 0:
            rows = x.untyped_storage().nbytes() // 4 // x.stride(0)
            wide = x.as_strided((min(rows, x.shape[0]), x.stride(0)), (x.stride(0), 1))
            y = (wide.square().sum(-1) / x.shape[1]).sqrt()
            last = x[len(y) :].square().mean(-1).sqrt()
            return torch.cat([y, last])
        return x.pow(2).mean(dim=-1).sqrt()
