"""Read a source file, and name the libraries that it runs."""
