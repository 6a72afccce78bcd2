"""gelu | output replay | the last answer is kept, and given again where the sum of the inputs is the same | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.key = None

    def forward(self, x):
        key = x.shape, round(float(x.double().sum()), 6)
        if self.key != key:
            self.key, self.kept = key, torch.nn.functional.gelu(x)
        return self.kept.clone()
