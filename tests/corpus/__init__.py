"""Saved reports for tests of all formats, and the digests of each report in every format."""
