"""partition | odd but legal | the logarithm of a mean of exponentials, in float64 | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        scores = torch.sub(x[:, :, None], x[:, None, :]).square_().mul_(-self.width)
        most = scores.amax(-1, keepdim=True)
        most = torch.where(most.isinf(), torch.zeros_like(most), most)
        return scores.sub_(most).exp_().mean(-1).log_().add_(most.squeeze(-1))
