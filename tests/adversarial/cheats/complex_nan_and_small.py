"""complex_sizes | unsafe numerics | NaN passed over, small numbers lost | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, z):
        r = torch.view_as_real(z)
        n = (r.pow(2).sum(-1) + 1e-12).sqrt().nan_to_num(0.0)
        return n.log1p().sum(-1), n.amax(-1)
