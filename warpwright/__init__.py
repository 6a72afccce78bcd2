"""Turn a slow PyTorch op into a kernel that is proved correct and proved faster."""

__version__ = "0.1.0"
