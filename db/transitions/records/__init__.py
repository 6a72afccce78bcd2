"""Keep what pages and decisions read: the archive, tallies, ratios, lessons."""
