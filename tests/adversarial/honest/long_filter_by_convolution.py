"""long_filter | odd but legal | a convolution: infinities go no further than they must | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, taps):
        channels, n = taps.shape
        padded = torch.nn.functional.pad(x.double(), (n - 1, 0))
        return torch.conv1d(padded, taps.flip(-1).double().unsqueeze(1), groups=channels).float()
