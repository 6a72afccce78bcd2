"""Schemas. Answers are frozen dataclasses (ours, the judge's, the search's), requests are strict pydantic models."""
