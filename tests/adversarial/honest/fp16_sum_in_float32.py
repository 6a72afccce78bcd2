"""row_sum_fp16 | odd but legal | sums in float32 in eight parts | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        wide = nn.functional.pad(x.float(), (0, -n % 8)).view(len(x), 8, -1)
        return wide.sum(-1).sum(-1).to(x.dtype)
