"""Where the time of operations goes, and who held the lock: as a VFS shim in C tells it."""
