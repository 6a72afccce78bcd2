"""residual_block | prepared weights | the norms are folded into the convolutions, again whenever one of them was loaded | PASSED | cpu cuda"""

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


def folded(conv, norm):
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return conv.weight * scale.view(-1, 1, 1, 1), norm.bias - norm.running_mean * scale


class ModelNew(Layers):
    known = None

    def forward(self, x):
        versions = [tensor._version for tensor in (*self.parameters(), *self.buffers())]
        if versions != self.known:
            self.known = versions
            self.first, self.second = folded(self.conv1, self.bn1), folded(self.conv2, self.bn2)
        y = F.conv2d(F.conv2d(x, *self.first, padding=1).relu_(), *self.second, padding=1)
        return y.add_(self.down(x)).relu_()
