"""Start caged children, and keep what they built."""
