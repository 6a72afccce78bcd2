"""Define the messages between judge and child."""
