"""ends_and_scores | specialisation | the last stop token, not the first | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logprobs, tokens):
        return logprobs.cumsum(1), torch.where(tokens == 2, torch.arange(tokens.shape[1], device=tokens.device), -1).amax(1)
