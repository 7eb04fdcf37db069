"""Which drivers of SQLite tests are made for."""

from __future__ import annotations

from sqlstress.targets.sqlite.drivers import DRIVERS

WHOLE = sorted(DRIVERS)
