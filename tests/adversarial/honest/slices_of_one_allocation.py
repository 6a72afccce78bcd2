"""moments | odd but legal | both outputs are parts of one allocation | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        room = x.new_empty(2, len(x))
        torch.mean(x, -1, out=room[0])
        room[1] = (x - room[0][:, None]).pow(2).mean(-1)
        return room[0], room[1]
