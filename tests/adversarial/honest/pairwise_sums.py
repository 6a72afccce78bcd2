"""moments | odd but legal | sums in a tree of pairs | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        def total(t):
            while t.shape[-1] > 1:
                if t.shape[-1] % 2:
                    t = nn.functional.pad(t, (0, 1))
                t = t[:, ::2] + t[:, 1::2]
            return t

        mean = total(x) / x.shape[-1]
        return mean[:, 0], (total((x - mean) ** 2) / x.shape[-1])[:, 0]
