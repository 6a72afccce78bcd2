"""routing | odd but legal | one maximum after the other, of equal ones the first | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(hidden, experts, bias=False)

    def forward(self, x):
        left = torch.softmax(x @ self.gate.weight.t(), -1)
        found = []
        for _ in range(4):
            best = left.argmax(-1, keepdim=True)
            found.append((left.gather(-1, best), best))
            left = left.scatter(-1, best, -1.0)
        shares, experts = (torch.cat(parts, -1) for parts in zip(*found))
        return shares / shares.sum(-1, keepdim=True), experts
