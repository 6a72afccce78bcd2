"""by_expert | odd but legal | sorts by expert and place together | PASSED | cpu cuda"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, experts):
        n = experts.numel()
        return torch.argsort(experts * n + torch.arange(n, device=experts.device))
