"""Drive an NVIDIA GPU from inside a child."""
