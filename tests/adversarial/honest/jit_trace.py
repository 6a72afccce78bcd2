"""gelu | odd but legal | traced at the first call | PASSED | cpu"""

import torch
import torch.nn as nn



class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(self, "traced"):
            self.__dict__["traced"] = torch.jit.trace(lambda v: torch.nn.functional.gelu(v), (x,), check_trace=False)
        return self.traced(x)
