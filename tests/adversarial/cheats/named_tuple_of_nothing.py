"""top_four | forged results | the right kind of tuple with anything in it | INCORRECT_VALUES INCORRECT_SHAPE | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.topk(torch.randn(x.shape[0], 9, device=x.device), 4)
