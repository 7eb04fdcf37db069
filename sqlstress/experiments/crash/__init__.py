"""Crash tests: writers are killed. Their acknowledged transactions must be in the files, each complete."""
