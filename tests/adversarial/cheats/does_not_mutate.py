"""add_into | input mutation | gives the sum, but leaves the input that it should have added to | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x + y).sum(dim=-1)
