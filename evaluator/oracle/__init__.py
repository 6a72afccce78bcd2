"""Work out what is right, in float64, from the reference."""
