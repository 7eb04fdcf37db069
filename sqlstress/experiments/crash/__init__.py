"""Crash tests: after a kill the rows show which transactions exist, and whether each is complete."""
