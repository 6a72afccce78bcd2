"""The synthesiser against eager PyTorch and torch.compile, row by row."""
