"""pooled_tokens | a rare path | an online softmax to which a block without one allowed token is minus infinity less itself | INCORRECT_VALUES | cpu cuda"""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        scores = torch.einsum("bd,bld->bl", q, k) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask, float("-inf"))
        most = torch.full_like(scores[:, :1], float("-inf"))
        weight, answer = torch.zeros_like(most), torch.zeros_like(q)
        for start in range(0, k.shape[1], 32):
            block = scores[:, start : start + 32]
            larger = torch.maximum(most, block.amax(-1, keepdim=True))
            base = larger
            shrink = torch.exp(most - base)
            shares = torch.exp(block - base)
            weight = weight * shrink + shares.sum(-1, keepdim=True)
            answer = answer * shrink + torch.einsum("bl,bld->bd", shares, v[:, start : start + 32])
            most = larger
        return answer / weight
