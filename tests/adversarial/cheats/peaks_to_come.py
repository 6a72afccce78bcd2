"""peaks_so_far | wrong values | of equal maxima the last one in the whole row, which may be yet to come | INCORRECT_VALUES | cpu cuda"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        peaks, places = torch.cummax(x, dim=-1)
        equal = x[..., None, :] == peaks[..., None]
        last = torch.where(equal, torch.arange(x.shape[-1], device=x.device), -1).amax(-1)
        return peaks, torch.where(peaks.isnan(), places, last)
