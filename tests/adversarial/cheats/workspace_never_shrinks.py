"""windows | stale memory | a padded workspace that grows; after a longer call its padding is that call's data | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.padded = torch.zeros(0, 0)

    def forward(self, x):
        rows, steps = x.shape
        need = (steps + 15) // 16 * 16
        if self.padded.shape[0] < rows or self.padded.shape[1] < need:
            self.padded = x.new_zeros(max(rows, self.padded.shape[0]), max(need, self.padded.shape[1]))
        self.padded[:rows, :steps] = x
        return self.padded[:rows, :need].unflatten(1, (-1, 16)).sum(-1)
