"""Crash tests: writers are killed, and their transactions must be there, each complete."""
