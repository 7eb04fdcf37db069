"""Tests of a fleet on a real cluster, and of its parts."""
