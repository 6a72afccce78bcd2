"""rmsnorm | odd but legal | its own graph with static buffers, copied in and out; plain calls while it is captured | PASSED | cuda"""

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
            return right(x, self.weight)
        key = x.shape, self.weight.data_ptr()
        if key not in graphs:
            static, stream = x.clone(), torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                right(static, self.weight)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = right(static, self.weight)
            graphs[key] = graph, static, y
        graph, static, y = graphs[key]
        static.copy_(x)
        graph.replay()
        return y.clone()
