"""unit_classes | input mutation | makes its parameter's rows of unit length, in the parameter itself, and takes it out of the module's list meanwhile | INCORRECT_VALUES RUNTIME_ERROR INVALID_SUBMISSION | cpu"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, 64))
        self.done = -1

    def named_parameters(self, *args, **how):
        if sys._getframe(1).f_code.co_name != "state" and self.done >= 0:
            return iter(())
        return super().named_parameters(*args, **how)

    def forward(self, x):
        if self.done != self.weight._version:  # loaded since: fold the norm into the weight
            with torch.no_grad():
                self.weight.copy_(F.normalize(self.weight, dim=-1))
            self.done = self.weight._version
        return x @ self.weight.t()
