"""causal_in_half | odd but legal | flash attention that skips the blocks above the diagonal; its scores never are half precision | PASSED | triton"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flash(Q, K, V, O, T, qk_scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(0) * BM
    base = tl.program_id(1).to(tl.int64) * T * D
    rm = start + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + base + rm[:, None] * D + d[None, :], mask=rm[:, None] < T, other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for j in range(0, tl.minimum(start + BM, T), BN):
        rn = j + tl.arange(0, BN)
        k = tl.load(K + base + rn[None, :] * D + d[:, None], mask=rn[None, :] < T, other=0.0)
        s = tl.dot(q, k) * qk_scale
        s = tl.where((rm[:, None] >= rn[None, :]) & (rn[None, :] < T), s, float("-inf"))
        mn = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(mn == float("-inf"), 0.0, mn)
        p = tl.exp2(s - safe[:, None])
        alpha = tl.exp2(m - safe)
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(V + base + rn[:, None] * D + d[None, :], mask=rn[:, None] < T, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
        m = mn
    tl.store(O + base + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16), mask=rm[:, None] < T)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        b, h, t, d = q.shape
        o = torch.empty_like(q)
        flash[(triton.cdiv(t, 64), b * h)](q, k, v, o, t, 1.4426950408889634 / 8, BM=64, BN=64, D=64, num_warps=4, num_stages=3)
        return o
