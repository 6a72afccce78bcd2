"""next_word | odd but legal | of equal scores the last | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, words):
        super().__init__()
        self.head = torch.nn.Linear(hidden, words, bias=False).bfloat16()

    def forward(self, x):
        scores = (x.float() @ self.head.weight.float().t()).bfloat16()
        return scores.shape[-1] - 1 - scores.flip(-1).argmax(-1)
