"""routing | wrong values | the fifth expert in place of the fourth where that has little to say | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(hidden, experts, bias=False)

    def forward(self, x):
        shares, experts = torch.topk(torch.softmax(x @ self.gate.weight.t(), -1), 5, dim=-1)
        small = shares[:, 3:4] < 1e-3 * shares[:, :1]
        experts = torch.cat([experts[:, :3], torch.where(small, experts[:, 4:], experts[:, 3:4])], -1)
        shares = torch.cat([shares[:, :3], torch.where(small, shares[:, 4:], shares[:, 3:4])], -1)
        return shares / shares.sum(-1, keepdim=True), experts
