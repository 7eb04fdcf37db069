"""The shop's settings: SQLite as Django sets it up by default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent

INSTALLED_APPS = ["shop"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SQLSTRESS_DATABASE", FOLDER / "shop.db"),
    }
}
