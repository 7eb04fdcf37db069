"""The project that the examples with Django share: one database, and its tables."""

import os

import django
from django.conf import settings
from django.core.management import call_command


def configured(*apps, **more):
    """Set up a project. TRANSACTION_MODE=IMMEDIATE changes how Django begins transactions."""
    options = {"timeout": 30}
    if mode := os.environ.get("TRANSACTION_MODE"):
        options["transaction_mode"] = mode
    sqlite = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["SQLSTRESS_DATABASE"],
        "OPTIONS": options,
    }
    settings.configure(
        DATABASES={"default": sqlite},
        INSTALLED_APPS=["django.contrib.contenttypes", *apps],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        **more,
    )
    django.setup()


def migrated():
    """Create the tables of the project's apps."""
    call_command("migrate", verbosity=0)
