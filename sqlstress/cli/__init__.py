"""Command line: each command parses its options, calls a function, prints a text and returns an exit code."""
