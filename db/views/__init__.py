"""Values that repositories return and workers exchange: frozen dataclasses."""
