"""HTTP itself: answers, errors, caching, cursors, limits."""
