"""Reports for continuous integration: what test runners, benchmark trackers and GitHub read."""
