"""cumsum | odd but legal | Hillis and Steele's scan: another order of sums | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y, step = x.clone(), 1
        while step < x.shape[-1]:
            y = torch.cat((y[:, :step], y[:, step:] + y[:, :-step]), 1)
            step *= 2
        return y
