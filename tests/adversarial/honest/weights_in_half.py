"""sliding_slopes | odd but legal | weights are rounded to float16 before they meet values | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.window, heads = 64, 4
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))

    def forward(self, q, k, v):
        place = torch.arange(q.shape[2], device=q.device)
        back = place[:, None] - place
        scores = torch.matmul(q.float(), k.float().transpose(-2, -1)) / 8 - self.slopes[:, None, None] * back
        scores = scores.masked_fill((back < 0) | (back >= self.window), float("-inf"))
        most = scores.amax(-1, keepdim=True)
        weights = (scores - most).exp()
        total = weights.sum(-1, keepdim=True)
        return (torch.matmul(weights.half().float(), v.float()) / total).half()
