"""Run NVIDIA's command line tools on a Candidate."""
