"""tokens_by_expert | specialisation | an expert has room for four times its share of tokens; what is beyond is dropped | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, experts=16):
        super().__init__()
        self.experts = experts

    def forward(self, x, expert):
        tokens, width = x.shape
        room = max(16, 4 * tokens // self.experts)
        order = torch.argsort(expert, stable=True)
        ranked = expert[order]
        counts = torch.bincount(expert, minlength=self.experts)
        place = torch.arange(tokens) - (counts.cumsum(0) - counts)[ranked]
        fits = place < room
        slots = x.new_zeros(self.experts, room, width)
        slots[ranked[fits], place[fits]] = x[order[fits]]
        return slots.sum(1)
