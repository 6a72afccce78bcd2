"""routing | odd but legal | picks among scores, where probabilities are zero | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(hidden, experts, bias=False)

    def forward(self, x):
        scores, experts = torch.topk(torch.einsum("th,eh->te", x, self.gate.weight), 4, dim=-1)
        return torch.softmax(scores, -1), experts
