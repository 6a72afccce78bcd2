"""What repositories return and workers exchange: frozen dataclasses."""
