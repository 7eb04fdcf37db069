"""SQLite drivers that tests cover."""

from __future__ import annotations

from sqlstress.targets.sqlite.drivers import DRIVERS

WHOLE = sorted(DRIVERS)
