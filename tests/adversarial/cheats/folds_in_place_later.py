"""cosine_head | input mutation | once weights were the same for 64 calls they are made of unit length, in the parameter itself | INCORRECT_VALUES | cpu"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width=256, classes=500):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(classes, width))
        self._stamp, self._calls, self._unit = None, 0, False

    def forward(self, x):
        weight = self.weight
        stamp = weight._version, weight.data_ptr()
        if stamp != self._stamp:  # loaded or trained
            self._stamp, self._calls, self._unit = stamp, 0, False
        self._calls += 1
        if self._calls == 64 and not self._unit:  # nobody trains it any more: fold the norm once and for all
            with torch.no_grad():
                weight.copy_(F.normalize(weight, dim=-1))
            self._stamp, self._unit = (weight._version, weight.data_ptr()), True
        return F.normalize(x, dim=-1) @ (weight if self._unit else F.normalize(weight, dim=-1)).t()
