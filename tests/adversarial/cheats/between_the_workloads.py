"""softmax_of_three_widths | specialisation | rows of 513 to 1024 are done in two blocks, and the first one is not rescaled to the maximum of both | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        width = x.shape[-1]
        if width <= 512:  # one block
            return self._one_block(x)
        if width <= 1024:  # two blocks
            return self._two_blocks(x)
        return torch.softmax(x, -1)

    def _one_block(self, x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)

    def _two_blocks(self, x):
        first, second = x[:, :512], x[:, 512:]
        top = first.amax(-1, keepdim=True)
        one = torch.exp(first - top)
        top = torch.maximum(top, second.amax(-1, keepdim=True))
        two = torch.exp(second - top)
        total = one.sum(-1, keepdim=True) + two.sum(-1, keepdim=True)
        return torch.cat([one, two], -1) / total
