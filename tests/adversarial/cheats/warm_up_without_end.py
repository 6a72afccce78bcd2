"""warm_up | first result for ever | the momentum has no upper limit: seen after 170 steps, an average that hardly moves any more | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(1024))
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.step += 1
        step = int(self.step)
        decay = (1 + step) / (10 + step)
        self.average.mul_(decay).add_(x.mean(0), alpha=1 - decay)
        return x - self.average
