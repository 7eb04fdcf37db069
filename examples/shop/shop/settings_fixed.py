"""The shop's settings with the fix: transactions begin IMMEDIATE, wait up to 20 s, and use a WAL."""

from __future__ import annotations

from shop.settings import DATABASES, DEFAULT_AUTO_FIELD, INSTALLED_APPS, USE_TZ

__all__ = ["DATABASES", "DEFAULT_AUTO_FIELD", "INSTALLED_APPS", "USE_TZ"]

DATABASES["default"]["OPTIONS"] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL",
}
