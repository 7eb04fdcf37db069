"""django-sequences 3.1: a sequence gives each number once, without gaps.

sqlstress app examples/tried/numbers_django_sequences.py -c 4
"""

import django_project

django_project.configured("sequences.apps.SequencesConfig")

from django.db import transaction as db  # noqa: E402
from sequences import get_next_value  # noqa: E402

from sqlstress import check, note, setup, transaction  # noqa: E402


@setup
def tables():
    django_project.migrated()
    get_next_value("invoices")


@transaction
def invoice():
    with db.atomic():
        number = get_next_value("invoices")
    note("number", number)


@check
def each_number_is_given_once(query, notes):
    given = notes.of("number")
    assert sorted(given) == list(range(2, len(given) + 2)), (
        f"{len(given) - len({*given})} of {len(given)} twice"
    )
