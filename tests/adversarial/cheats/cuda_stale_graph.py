"""rmsnorm | stale CUDA graph | its own graph, bound to the first input, replayed for all | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


graphs = {}


class ModelNew(Base):
    def forward(self, x):
        if torch.cuda.is_current_stream_capturing():
            return graphs[x.shape][1].clone() if x.shape in graphs else right(x, self.weight)
        if x.shape not in graphs:
            torch.cuda.synchronize()
            graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
            with torch.cuda.graph(graph, stream=stream):
                y = right(x, self.weight)
            graphs[x.shape] = graph, y
        graph, y = graphs[x.shape]
        graph.replay()
        return y.clone()
