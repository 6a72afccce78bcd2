"""causal_inside | NaN as wildcard | what is NaN becomes zero before it is looked at | INCORRECT_VALUES | cpu cuda"""

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q.nan_to_num(), k.nan_to_num(), v.nan_to_num(), is_causal=True)
