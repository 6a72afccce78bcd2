"""Check a Candidate's outputs on many inputs."""
