"""A state space scan in chunks, as Mamba-2 has it: what is left of the state decays within and between chunks."""

import torch

WORKLOADS = [
    {"name": "small", "batch": 2, "length": 64, "device": "cpu"},
    {"name": "odd", "batch": 1, "length": 51, "device": "cpu", "held_out": True},
    {"name": "large", "batch": 8, "length": 256, "device": "cuda"},
    {"name": "ragged", "batch": 3, "length": 83, "device": "cuda", "held_out": True},
]
CHUNK = 16


def decays(a):
    """Of `a` (..., length) at (i, j) what is left at i of the state at j: the sum of a[j + 1 .. i], exponentiated."""
    sums = a.cumsum(-1)
    kept = torch.ones(a.shape[-1], a.shape[-1], dtype=torch.bool, device=a.device).tril()
    return (sums[..., :, None] - sums[..., None, :]).masked_fill(~kept, -torch.inf).exp()


class Model(torch.nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.log(torch.linspace(1, 4, heads)))

    def forward(self, x, step, key, query):
        length = x.shape[1]
        step = torch.nn.functional.softplus(step)
        pad = -length % CHUNK
        x = torch.nn.functional.pad(x * step[..., None], (0, 0, 0, 0, 0, pad)).unflatten(1, (-1, CHUNK))
        a = (
            torch.nn.functional.pad(-self.rate.exp() * step, (0, 0, 0, pad))
            .unflatten(1, (-1, CHUNK))
            .permute(0, 3, 1, 2)
        )
        key, query = (torch.nn.functional.pad(t, (0, 0, 0, pad)).unflatten(1, (-1, CHUNK)) for t in (key, query))
        sums = a.cumsum(-1)
        within = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", query, key, decays(a), x)
        each = torch.einsum("bcln,bhcl,bclhp->bchpn", key, (sums[..., -1:] - sums).exp(), x)
        each = torch.cat((torch.zeros_like(each[:, :1]), each), 1)
        between = decays(torch.nn.functional.pad(sums[..., -1], (1, 0)))
        carried = torch.einsum("bhzc,bchpn->bzhpn", between, each)
        before, last = carried[:, :-1], carried[:, -1]
        within = within + torch.einsum("bcln,bchpn,bhcl->bclhp", query, before, sums.exp())
        return within.flatten(1, 2)[:, :length], last


def get_inputs(batch=2, length=64):
    return [
        torch.randn(batch, length, 4, 16),
        torch.randn(batch, length, 4) - 1,
        torch.randn(batch, length, 16),
        torch.randn(batch, length, 16),
    ]


def get_init_inputs():
    return [4]
