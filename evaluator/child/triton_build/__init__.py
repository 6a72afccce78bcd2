"""Use Triton inside the cage: caches, offline compilation, warm-up."""
