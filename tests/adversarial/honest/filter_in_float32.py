"""filter_and_gate | other orders of work | taps added in float32, rounded once behind the gate | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.filter = torch.nn.Conv1d(channels, channels, 4, groups=channels, dtype=torch.float16)

    def forward(self, x):
        padded = torch.nn.functional.pad(x.float(), (3, 0))
        weight, answer = self.filter.weight.float(), self.filter.bias.float()[:, None]
        for tap in range(4):
            answer = answer + padded[..., tap : tap + x.shape[-1]] * weight[:, 0, tap, None]
        return (answer * torch.sigmoid(answer)).to(x.dtype)
