"""rmsnorm | odd but legal | thirty classes deep | PASSED | cpu cuda"""

import torch
import torch.nn as nn


def right(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Base(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps


class Level0(Base):
    def forward(self, x):
        return right(x, self.weight)


class Level1(Level0):
    pass


class Level2(Level1):
    pass


class Level3(Level2):
    pass


class Level4(Level3):
    pass


class Level5(Level4):
    pass


class Level6(Level5):
    pass


class Level7(Level6):
    pass


class Level8(Level7):
    pass


class Level9(Level8):
    pass


class Level10(Level9):
    pass


class Level11(Level10):
    pass


class Level12(Level11):
    pass


class Level13(Level12):
    pass


class Level14(Level13):
    pass


class Level15(Level14):
    pass


class Level16(Level15):
    pass


class Level17(Level16):
    pass


class Level18(Level17):
    pass


class Level19(Level18):
    pass


class Level20(Level19):
    pass


class Level21(Level20):
    pass


class Level22(Level21):
    pass


class Level23(Level22):
    pass


class Level24(Level23):
    pass


class Level25(Level24):
    pass


class Level26(Level25):
    pass


class Level27(Level26):
    pass


class Level28(Level27):
    pass


class Level29(Level28):
    pass


class ModelNew(Level29):
    pass
