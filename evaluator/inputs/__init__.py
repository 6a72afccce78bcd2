"""Make the inputs that a Candidate is checked on."""
