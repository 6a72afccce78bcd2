"""beam_search | loose tolerance | of a beam that is continued twice the second token is the first one again | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, scores):
        batch, beams, vocabulary = logits.shape
        total = torch.log_softmax(logits, -1) + scores[..., None]
        best, index = total.view(batch, beams * vocabulary).topk(beams, -1)
        beam, token = index // vocabulary, index % vocabulary
        first = (beam[:, :, None] == beam[:, None, :]).to(torch.int8).argmax(-1)
        return best, beam, torch.where(best < best[:, :1] - 1.0, token.gather(1, first), token)
