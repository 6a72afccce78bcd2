"""Make the inputs that a Candidate is tried on."""
