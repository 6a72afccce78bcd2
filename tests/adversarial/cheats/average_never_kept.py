"""counter | first result for ever | the average restarted whenever sizes change, not kept over calls | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("average", torch.zeros(channels))

    def forward(self, x):
        average = 0.5 * self.average + 0.5 * x.mean(0)
        return x - average
