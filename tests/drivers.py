"""Which drivers of SQLite tests are made for."""

from __future__ import annotations

from sqlstress.target import DRIVERS as KNOWN
from sqlstress.targets.sqlite.drivers import DRIVERS

WHOLE = [name for name in sorted(DRIVERS) if not KNOWN[name].keyvalue]
"""Those that serve every experiment; another one can't be interrupted, and tells no extended codes."""
