"""All reads. Each function takes a Session and returns frozen dataclasses; none writes."""
