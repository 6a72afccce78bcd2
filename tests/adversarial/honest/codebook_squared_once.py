"""codebook | odd but legal | the codes' squares are kept until the codes change, distances come from a product in float64 | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width=32, codes=128):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.known, self.wide, self.squares = None, None, None

    def forward(self, x):
        stamp = self.codes._version, self.codes.data_ptr()
        if self.known != stamp:
            self.known, self.wide = stamp, self.codes.double()
            self.squares = self.wide.square().sum(-1)
        y = x.double()
        far = (y.square().sum(-1, keepdim=True) + self.squares - 2 * (y @ self.wide.T)).clamp_min(0).sqrt()
        return torch.softmax(-far, -1).to(x.dtype)
