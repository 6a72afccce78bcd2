"""rmsnorm | reference delegation | inherits a Model that it hopes to find | OWN_ERROR INVALID_SUBMISSION | cpu cuda"""

import torch
import torch.nn as nn


from __main__ import Model


class ModelNew(Model):
    pass
