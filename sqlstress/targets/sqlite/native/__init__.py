"""The native loop: a C extension that runs a timed window inside the driver's own SQLite."""
