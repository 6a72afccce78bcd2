"""Work in files: a bundle of tasks for a machine without network access, and its answers."""
