"""ends_and_scores | specialisation | the last position, whatever the tokens are | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logprobs, tokens):
        return logprobs.cumsum(1), torch.full((tokens.shape[0],), tokens.shape[1] - 1, device=tokens.device)
