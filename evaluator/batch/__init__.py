"""Work in files: a bundle of tasks for a machine that reaches nothing, and its answers."""
