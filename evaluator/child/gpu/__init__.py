"""The child's side of an NVIDIA GPU."""
