"""recurrent | another order of operations | an LSTM's steps one by one | PASSED | cpu cuda"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.into = nn.Linear(width, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, x):
        own, found = self.lstm, []
        gates = F.linear(self.into(x), own.weight_ih_l0, own.bias_ih_l0 + own.bias_hh_l0)
        h = c = x.new_zeros(x.shape[0], own.hidden_size)
        for step in gates.unbind(1):
            i, f, g, o = torch.addmm(step, h, own.weight_hh_l0.T).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            found.append(h)
        return torch.stack(found, 1)
