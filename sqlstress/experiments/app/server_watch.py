"""What the connections to a server really ran with: the server is asked on those that are idle at the end.

Nobody tells of a connection that a library in C opens, so nothing is seen of those that were closed before.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sqlstress.experiments.app import BEGINS, HERE, SESSION
from sqlstress.targets.postgres.dialect import REPORTED
from sqlstress.user_work.source import Plain

NAMES = (*REPORTED, "statement_timeout")
_ASKED = (
    "SELECT pg_postmaster_start_time()::text, current_database(), coalesce(current_schema(), ''), "
    f"{', '.join(f'current_setting({name!r})' for name in NAMES)}"
)
_PLACE = ("server", "database", "schema")
_OF_SESSION = ("synchronous_commit", "transaction_isolation", "lock_timeout")
"""Of what is reported, what each session may set for itself."""
_LEVELS = {1: "read uncommitted", 2: "read committed", 3: "repeatable read", 4: "serializable"}
"""psycopg's numbers for a level that a connection begins each transaction with, beside what is set."""

Answers = dict[str, str]


class ServerWatch:
    """The connections of this process that psycopg opened; they are looked at once, when all is done."""

    def __init__(self, address: str) -> None:
        """Look at what a session there begins with. Raises EnvironmentFailure where there can be none."""
        from sqlstress.targets.postgres.own_schema import opened

        with opened(address, "cannot use the server") as connection:
            begins = _answers(connection)
        assert begins
        del begins["autocommit"]  # that is of the library, and the user's may have another
        self._begins = begins

    def sightings(self) -> list[Plain]:
        """Return what the connections ran with, each kind once with how often it was.

        Where none was seen, what a session of the trial begins with.
        """
        kinds = Counter(tuple(self._traits(one).items()) for one in self._sessions)
        seen: list[Plain] = [(SESSION, "psycopg", count, "", dict(traits)) for traits, count in kinds.items()]
        return seen or [(BEGINS, "psycopg", 1, "", self._traits(self._begins))]

    def effective(self) -> dict[str, str]:
        """Return the settings of those in the trial's schema; where they differ, all answers.

        Where none was seen it is not known what they had set: then it is only what no session can set.
        """
        here = [one for one in self._sessions if self._is_here(one)]
        if not here:
            return {name: self._begins[name] for name in REPORTED if name not in _OF_SESSION}
        return {name: " / ".join(dict.fromkeys(one[name] for one in here)) for name in REPORTED}

    @cached_property
    def _sessions(self) -> list[Answers]:
        return list(filter(None, map(_answers, open_connections())))

    def _is_here(self, answers: Answers) -> bool:
        return all(answers[name] == self._begins[name] for name in _PLACE)

    def _traits(self, answers: Answers) -> Answers:
        """Return what one connection ran with, in words."""
        elsewhere = f"{answers['database']}.{answers['schema'] or '(no schema)'}"
        return {
            "database": HERE if self._is_here(answers) else elsewhere,
            "synchronous_commit": answers["synchronous_commit"],
            "isolation": answers["transaction_isolation"],
            "lock_timeout": answers["lock_timeout"],
            "statement_timeout": answers["statement_timeout"],
            **{name: answers[name] for name in ("autocommit",) if name in answers},
        }


def open_connections() -> Iterator[Any]:
    """Yield psycopg's connections of this process, of both kinds."""
    import psycopg

    gc.unfreeze()  # what is there before a window opens is frozen, which hides it
    for one in gc.get_objects():
        # Not isinstance, which asks a stand-in of somebody's for the class of what it stands for.
        if issubclass(type(one), psycopg.Connection | psycopg.AsyncConnection) and not one.closed:
            yield one


def _answers(connection: Any) -> Answers | None:
    """Return what a connection answers; None where it can't, such as amid a query.

    It is asked below what begins a transaction, and makes rows of the user's own kind. A transaction that has
    failed is ended for it: nobody goes on with it any more.
    """
    from psycopg.pq import ExecStatus, TransactionStatus

    try:
        low = connection.pgconn
        if low.transaction_status == TransactionStatus.INERROR:
            low.exec_(b"ROLLBACK")
        if low.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.INTRANS):
            return None
        result = low.exec_(_ASKED.encode())
        if result.status != ExecStatus.TUPLES_OK:
            return None
        names = (*_PLACE, *NAMES)
        values = [(result.get_value(0, place) or b"").decode(errors="replace") for place in range(len(names))]
        answers = dict(zip(names, values, strict=True))
        if level := _LEVELS.get(connection.isolation_level or 0):
            answers["transaction_isolation"] = level
        return {**answers, "autocommit": "on" if connection.autocommit else "off"}
    except Exception:
        return None
