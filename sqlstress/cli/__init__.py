"""The command line: options in, one call, text out, exit code. A file for each command."""
