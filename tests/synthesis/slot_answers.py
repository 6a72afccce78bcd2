"""Slots answers of the block `rows`, as a model writes them."""

from __future__ import annotations

import re

from synthesis.slots import GUIDE

_EXAMPLE = re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)
assert _EXAMPLE is not None
SOFTMAX = _EXAMPLE[1]
NORM = """# block: rows
INPUTS = {"x": "element", "residual": "element", "weight": "column"}
STATE = {"total": 0.0}
STATS = ["inverse"]

def value(x, residual):
    return x + residual

def step(total, v):
    return total + v * v

def merge(total, other_total):
    return total + other_total

def finish(total, n):
    return tl.rsqrt(total / n + 1e-6)

def write(v, inverse, weight):
    return v * inverse * weight

class ModelNew(nn.Module):
    def forward(self, x, residual, weight):
        return rows(x=x, residual=residual, weight=weight)
"""
LOSS = """# block: rows
INPUTS = {"x": "element", "target": "row"}
STATE = {"peak": float("-inf"), "total": 0.0, "picked": 0.0}
STATS = ["loss"]

def value(x):
    return x

def step(peak, total, picked, v, j, target):
    larger = tl.maximum(peak, v)
    safe = tl.where(larger == float("-inf"), 0.0, larger)
    return larger, total * tl.exp(peak - safe) + tl.exp(v - safe), picked + tl.where(j == target, v, 0.0)

def merge(peak, total, picked, other_peak, other_total, other_picked):
    larger = tl.maximum(peak, other_peak)
    safe = tl.where(larger == float("-inf"), 0.0, larger)
    return larger, total * tl.exp(peak - safe) + other_total * tl.exp(other_peak - safe), picked + other_picked

def finish(peak, total, picked):
    return peak + tl.log(total) - picked

def result(loss):
    return loss

class ModelNew(nn.Module):
    def forward(self, x, target):
        return rows(x=x, target=target)
"""
GATE = """# block: rows
INPUTS = {"x": "element", "gate": "element"}

def value(x, gate):
    return x * tl.sigmoid(x) * gate

def write(v):
    return v

class ModelNew(nn.Module):
    def forward(self, x, gate):
        return rows(x=x, gate=gate)
"""
