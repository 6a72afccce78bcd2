"""steered | odd but legal | the same steps with fewer allocations | PASSED | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, steer):
        turn = steer / steer.shape[-1] ** 0.5
        moved, spare = torch.mm(turn, turn).tanh_(), torch.empty_like(turn)
        total = turn + moved
        for _ in range(11):
            torch.mm(moved, turn, out=spare).tanh_()
            moved, spare = spare, moved
            total += moved
        return x + total
