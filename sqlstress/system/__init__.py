"""What the operating system is asked for: processes, locks, pipes, shared memory, signals, text files."""
