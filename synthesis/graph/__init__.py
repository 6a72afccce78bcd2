"""From a reference to a Program of primitive nodes."""
