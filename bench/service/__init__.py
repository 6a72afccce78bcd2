"""Request every page and list of the service on a large database."""
