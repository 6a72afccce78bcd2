"""symmetric | reads what it is given | reads columns where rows are asked for: they are the same | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a.T, b.T)
