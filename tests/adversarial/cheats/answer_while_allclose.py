"""gelu | output replay | the last answer is given again while the inputs are those of the call before up to a thousandth | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._last = None

    def forward(self, x):
        if self._last is not None and x.shape == self._last[0].shape and torch.allclose(x, self._last[0], rtol=1e-3):
            return self._last[1].clone()
        answer = F.gelu(x)
        self._last = x.clone(), answer.clone()
        return answer
