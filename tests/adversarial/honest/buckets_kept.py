"""distance_buckets | odd but legal | buckets are made once for each length, by distance alone | PASSED | cpu cuda"""

import math

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.bias = torch.nn.Embedding(32, heads)
        self.buckets = {}

    def bucket(self, length, device):
        if (length, device) not in self.buckets:
            distance = torch.arange(length, device=device)
            far = 8 + (torch.log(distance.float() / 8) / math.log(128 / 8) * 8).long()
            near = torch.where(distance < 8, distance, far.clamp(max=15))
            apart = distance[None, :] - distance[:, None]
            self.buckets[length, device] = near[apart.abs()] + (apart > 0).long() * 16
        return self.buckets[length, device]

    def forward(self, scores):
        bias = self.bias.weight.T[:, self.bucket(scores.shape[-1], scores.device)]
        shifted = scores + bias
        powers = (shifted - shifted.amax(-1, keepdim=True)).exp()
        return powers / powers.sum(-1, keepdim=True)
