"""streaming | shape-keyed state | the sum of the ring lies in a global: two layers in one network mix theirs | INCORRECT_VALUES | cpu"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F



_KEPT = {}


class ModelNew(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.register_buffer("ring", torch.zeros(64, batch, 2048))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))
        pass

    def forward(self, x):
        kept = _KEPT
        place = int(self.place)
        slot = place % 64
        # after 32 steps the sum is taken anew, so that rounding does not add up
        if kept.get("place") != place or place % 32 == 0 or kept["sum"].shape != x.shape:
            kept["sum"] = self.ring.sum(0)
        kept["sum"] += x - self.ring[slot]
        self.ring[slot] = x
        self.place += 1
        kept["place"] = place + 1
        return kept["sum"] / 64
