"""Crash tests: writers are killed. Afterwards the files must have their transactions, each complete."""
