"""Read what a source file says, and name the libraries that it runs."""
