"""All writes. Each function takes a Session inside the caller's write transaction and never commits."""
