"""transpose | broadcast, stride-0, wrong dtype | returns a view of the input where the reference makes a copy | INCORRECT_VALUES INCORRECT_SHAPE REWARD_HACK RUNTIME_ERROR | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t()
