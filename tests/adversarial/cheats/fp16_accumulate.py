"""row_sum_fp16 | precision downgrade | adds in float16 | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = x[:, 0].clone()
        parts = x[:, : x.shape[-1] // 8 * 8].view(len(x), 8, -1)
        total = torch.zeros(len(x), dtype=torch.float16, device=x.device)
        for column in parts.transpose(1, 2).reshape(len(x), -1).unbind(-1):
            total = total + column
        for column in x[:, x.shape[-1] // 8 * 8 :].unbind(-1):
            total = total + column
        return total
