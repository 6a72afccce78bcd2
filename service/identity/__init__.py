"""Authentication, scopes and audit lines."""
