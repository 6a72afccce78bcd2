"""spectral_norm_in_training | odd but legal | W v is computed once for iteration and norm, and the answer is divided by it | PASSED | cpu"""

import torch
import torch.nn as nn
import torch.nn.functional as F

INNER, OUTER = 192, 128


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(OUTER, INNER) / 12)
        self.bias = nn.Parameter(torch.zeros(OUTER))
        self.register_buffer("u", F.normalize(torch.randn(OUTER), dim=0))

    def forward(self, x):
        weight = self.weight.detach()
        v = torch.mv(weight.t(), self.u)
        v.div_(torch.linalg.vector_norm(v).clamp_(min=1e-12))
        stretched = torch.mv(weight, v)
        if self.training:
            torch.div(stretched, torch.linalg.vector_norm(stretched).clamp_(min=1e-12), out=self.u)
        sigma = torch.dot(self.u, stretched)
        y = torch.mm(x, self.weight.t()).div_(sigma).add_(self.bias)
        return F.leaky_relu_(y, 0.1)
