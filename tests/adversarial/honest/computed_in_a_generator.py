"""gelu | odd but legal | a generator inside forward | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def parts(self, x):
        for part in x.split(1000):
            yield nn.functional.gelu(part)

    def forward(self, x):
        return torch.cat(tuple(self.parts(x)))
