"""Processes, the common window, the timed loop, and everything that must be cleaned up afterwards."""
