"""SQLite drivers that tests cover."""

from sqlstress.targets.sqlite.drivers import DRIVERS

WHOLE = sorted(DRIVERS)
