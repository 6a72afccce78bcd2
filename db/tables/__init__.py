"""The tables, by what they keep."""
