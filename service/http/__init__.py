"""HTTP itself: answers, errors, negotiation, caching, cursors, limits."""
