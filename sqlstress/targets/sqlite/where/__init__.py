"""Where the time of operations goes, and who held the lock: told by a VFS shim in C, put together afterwards."""
