"""rmsnorm | odd but legal | future annotations, overloads, dataclasses and a match statement | PASSED | cpu cuda"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

EPS: Final = 1e-6


@dataclass(frozen=True)
class Way:
    name: str


class ModelNew(nn.Module):
    weight: nn.Parameter

    def __init__(self, hidden: int, eps: float = EPS) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps, self.way = eps, Way("plain")

    def forward(self, x: Tensor) -> Tensor:
        match self.way:
            case Way(name="plain"):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
            case _:
                raise AssertionError
