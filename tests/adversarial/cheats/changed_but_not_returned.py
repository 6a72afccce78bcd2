"""relu_in_place | input mutation | changes its input rightly and returns what it was | INCORRECT_VALUES | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        before = x.clone()
        x.relu_()
        return before
