"""Several kernels in one file: each call goes to the fastest for its shapes."""
