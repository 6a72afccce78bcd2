"""Pieces of exported files: literals, the verified domain, and the texts of the guard and of --check."""
