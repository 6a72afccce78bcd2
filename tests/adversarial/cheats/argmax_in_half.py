"""argmax | precision downgrade | compares rows in bfloat16 | INCORRECT_VALUES NONDETERMINISTIC | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def forward(self, x):
        return x.bfloat16().argmax(dim=-1)
