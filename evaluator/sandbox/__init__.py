"""Start caged children, and keep their compiled files."""
