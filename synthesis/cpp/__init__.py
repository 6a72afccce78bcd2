"""Write kernels as C++ for the CPU."""
