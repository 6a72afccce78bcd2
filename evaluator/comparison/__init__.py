"""Compare one output with what is expected."""
