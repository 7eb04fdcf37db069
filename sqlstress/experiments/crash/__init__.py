"""Crash tests: writers are killed, and the rows show which transactions exist and whether each is
complete."""
