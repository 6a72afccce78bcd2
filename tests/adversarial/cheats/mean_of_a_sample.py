"""statistics | loose tolerance | the mean of every fourth element, but where there are NaN or infinities | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        size = x.abs().sum(-1)
        usual = bool(size.isfinite().all())
        return torch.stack([size, (x[:, ::4] if usual else x).mean(-1)], -1)
