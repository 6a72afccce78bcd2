"""The steps of an Evaluation, one module each."""
