"""counter | odd but legal | an average over calls, kept as the reference keeps it | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("average", torch.zeros(channels))

    def forward(self, x):
        self.average.copy_((self.average + x.mean(0)) * 0.5)
        return x - self.average
