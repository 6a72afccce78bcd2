"""The synthesiser on a CPU beside eager PyTorch and torch.compile."""
