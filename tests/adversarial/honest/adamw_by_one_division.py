"""adamw | odd but legal | lr times the mean comes first: denormal numbers keep fewer bits | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, lr, decay):
        super().__init__()
        self.lr, self.decay = lr, decay

    def forward(self, parameter, gradient, mean, square):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.mul_(1 - self.lr * self.decay).addcdiv_(mean, square.sqrt().add_(1e-8), value=-self.lr)
        return parameter, mean, square
