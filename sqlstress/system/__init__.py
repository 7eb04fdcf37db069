"""Services of the operating system: processes, locks, pipes, shared memory, signals, files."""
