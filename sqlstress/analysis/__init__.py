"""Conclusions from reports: functions that take reports and return findings (sentences with their facts)."""
