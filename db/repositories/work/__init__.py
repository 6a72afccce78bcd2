"""Reads of the queue, the devices and the installation."""
