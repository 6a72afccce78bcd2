"""row_sum_fp16 | odd but legal | a product with ones, accumulated in float32 | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x.float() @ torch.ones(x.shape[-1], 1, device=x.device))[:, 0].half()
