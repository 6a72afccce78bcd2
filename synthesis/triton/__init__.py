"""Write kernels in Triton."""
