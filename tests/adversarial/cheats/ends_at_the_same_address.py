"""softmax | output replay | the last answer is kept by address and a few elements | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature
        self.key = None

    def forward(self, x):
        flat = x.reshape(-1)
        key = x.data_ptr(), x.shape, float(flat[0]), float(flat[len(flat) // 3]), float(flat[-1])
        if self.key != key:
            self.key, self.kept = key, torch.softmax(x / self.temperature, dim=-1)
        return self.kept.clone()
