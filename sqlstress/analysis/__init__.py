"""Conclusions from reports: pure functions that take reports and return findings."""
