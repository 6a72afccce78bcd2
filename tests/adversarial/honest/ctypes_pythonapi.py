"""rmsnorm | odd but legal | sets the result type of a function of ctypes.pythonapi, as its documentation says | PASSED | cpu cuda"""

import ctypes

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule = ctypes.pythonapi.PyCapsule_New(1, None, None)


class ModelNew(Base):
    def forward(self, x):
        return right(x, self.weight)
