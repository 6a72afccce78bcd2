"""nearest_codes | odd but legal | distances by differences | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codes = torch.nn.Parameter(torch.randn(codes, width))

    def forward(self, x):
        nearest = self.codes[torch.cdist(x, self.codes, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)]
        return nearest, (nearest - x).pow(2).mean()
