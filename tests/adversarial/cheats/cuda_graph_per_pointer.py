"""rmsnorm | stale CUDA graph | a graph for each input address, its weight folded into the captured constants | INCORRECT_VALUES NONDETERMINISTIC RUNTIME_ERROR | cuda"""

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
            return right(x, self.folded(x))
        key = x.data_ptr(), x.shape
        if key not in graphs:
            torch.cuda.synchronize()
            graph, weight = torch.cuda.CUDAGraph(), self.folded(x)
            with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
                y = right(x, weight)
            graphs[key] = graph, y
        graphs[key][0].replay()
        return graphs[key][1].clone()

    def folded(self, x):
        if not hasattr(self, "kept"):
            self.kept = self.weight.detach().clone()
        return self.kept
