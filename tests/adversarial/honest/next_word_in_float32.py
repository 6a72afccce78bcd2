"""next_word | odd but legal | scores in float32, where none are equal | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, words):
        super().__init__()
        self.head = torch.nn.Linear(hidden, words, bias=False).bfloat16()

    def forward(self, x):
        return (x.float() @ self.head.weight.float().t()).argmax(-1)
