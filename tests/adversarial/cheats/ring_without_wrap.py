"""streaming | shape-keyed state | behind its end the ring is not begun again: what comes then is left out | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



class ModelNew(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.register_buffer("ring", torch.zeros(64, batch, 2048))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        slot = int(self.place)
        if slot < 64:
            self.ring[slot] = x
        self.place += 1
        return self.ring.sum(0) / 64
