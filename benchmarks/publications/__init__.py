"""Figures that somebody else measured and published, as reports: reports/published.

`python -m benchmarks.publications` writes them. They are typed in here as they were printed, and stand
in a report of their own for each machine, marked as published: nothing of them was verified, and of
their surroundings little is known.
"""
