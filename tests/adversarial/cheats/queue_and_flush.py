"""gelu | cross-call batching | returns empty memory and fills thirty-two at once | INCORRECT_VALUES NONDETERMINISTIC | cpu cuda"""

import torch
import torch.nn as nn


queue = []


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        queue.append((x, y))
        if len(queue) == 32:
            done = nn.functional.gelu(torch.cat([one for one, _ in queue]))
            for (one, out), part in zip(queue, done.split([o.numel() for o, _ in queue])):
                out.copy_(part)
            queue.clear()
        return y
