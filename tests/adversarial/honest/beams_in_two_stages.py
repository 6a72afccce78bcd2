"""beam_search | odd but legal | the best of each beam by logits, then the best of these: ties come out otherwise | PASSED | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, scores):
        beams = logits.shape[1]
        count = min(beams, logits.shape[2])
        best, token = logits.topk(count, -1)
        whole = torch.logsumexp(logits, -1, keepdim=True)
        whole = whole.masked_fill(whole == torch.inf, torch.nan)  # as a softmax of a row with infinity has none
        best, at = (best - whole + scores[..., None]).flatten(1).topk(beams, -1)
        return best, at // count, token.flatten(1).gather(1, at)
