"""The words that judge and child exchange."""
