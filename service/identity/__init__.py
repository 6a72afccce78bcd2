"""Authentication, scopes and the audit line."""
