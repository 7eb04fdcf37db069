"""Command line: each command parses its options, calls a function, prints text, returns an exit code."""
