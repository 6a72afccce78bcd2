"""residual_block | another order of operations | the reference's own, in place | PASSED | cpu cuda"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Layers(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = nn.Conv2d(channels, width, 1, bias=False)


class ModelNew(Layers):
    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        return y.add_(self.down(x)).relu_()
