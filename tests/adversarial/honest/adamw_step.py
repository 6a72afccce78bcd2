"""adamw | odd but legal | changes three of its inputs and returns them | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, lr, decay):
        super().__init__()
        self.lr, self.decay = lr, decay

    def forward(self, parameter, gradient, mean, square):
        mean.mul_(0.9).add_(gradient, alpha=0.1)
        torch.addcmul(square * 0.999, gradient, gradient, value=0.001, out=square)
        step = mean / (square.sqrt() + 1e-8)
        torch.add(parameter * (1 - self.lr * self.decay), step, alpha=-self.lr, out=parameter)
        return parameter, mean, square
