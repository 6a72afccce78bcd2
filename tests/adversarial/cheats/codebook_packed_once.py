"""codebook | default parameters, stale folding | a copy of the codebook is made at the first call; what is loaded later is not seen | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width=32, codes=128):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.codes.clone()
        return torch.softmax(-torch.cdist(x, self.packed, compute_mode="donot_use_mm_for_euclid_dist"), -1)
