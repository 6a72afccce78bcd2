"""kernel_features | odd but legal | states of chunks: zero times infinity is met earlier | PASSED | cpu cuda"""

import torch

CHUNK = 32


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        state = q.new_zeros(q.shape[0], q.shape[-1], v.shape[-1])
        total = q.new_zeros(q.shape[0], q.shape[-1], 1)
        parts = []
        for at in range(0, q.shape[1], CHUNK):
            a, b, c = (t[:, at : at + CHUNK] for t in (q, k, v))
            near = torch.matmul(a, b.transpose(-2, -1)).tril()
            above = torch.matmul(near, c) + torch.matmul(a, state)
            below = near.sum(-1, keepdim=True) + torch.matmul(a, total)
            parts.append(above / (below + 1e-6))
            state = state + torch.matmul(b.transpose(-2, -1), c)
            total = total + b.sum(1).unsqueeze(-1)
        return torch.cat(parts, 1)
