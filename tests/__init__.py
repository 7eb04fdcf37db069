"""Tests, a folder for each room."""
