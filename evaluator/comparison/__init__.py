"""Compare one output with the expected one."""
