"""Multi-process concurrency stress tests for SQLite."""

__version__ = "0.1.0"
