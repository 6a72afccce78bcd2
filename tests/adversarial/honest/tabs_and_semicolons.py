"""rmsnorm | odd but legal | tabs, semicolons, backslashes and form feeds | PASSED | cpu cuda"""

import torch; import torch.nn as nn

class ModelNew(nn.Module):
	def __init__(self, hidden, eps=1e-6): super().__init__(); self.weight = nn.Parameter(torch.ones(hidden)); self.eps = \
		eps
	def forward(self, x):
		if True: s = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps); return x * s * self.weight
