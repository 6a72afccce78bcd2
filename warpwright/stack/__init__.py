"""The embedded stack: Valkey, the API and the workers as child processes on one data folder."""
