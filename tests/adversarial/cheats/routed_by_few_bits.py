"""routing | lower precision | scores in bfloat16 | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(hidden, experts, bias=False)

    def forward(self, x):
        scores, experts = torch.topk((x @ self.gate.weight.t()).bfloat16(), 4, dim=-1)
        return torch.softmax(scores.float(), -1), experts
