"""Call language models: endpoints and their limits, one call, its cost, and the conversation around it."""
