"""Tests of what the reports of a fleet say."""
