"""What went wrong although no transaction raised it: exceptions that ended threads, and logged errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from sqlstress.errors import said
from sqlstress.experiments.app import LOGGED, THREAD_RAISED
from sqlstress.experiments.app.errors import class_of, line, name_of
from sqlstress.user_work.messages import OTHERS, kind_of
from sqlstress.user_work.source import Kinds, Plain


class Unraised:
    """What went wrong in one process without a transaction that raised it."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        self._hidden = hidden
        self._threads, self._records = Kinds(("", OTHERS)), Kinds(("", OTHERS))

    def watch(self) -> None:
        """See exceptions that end threads, and records logged at ERROR, from now on. There is no way back."""
        before, make = threading.excepthook, logging.getLogRecordFactory()

        def of_thread(args: threading.ExceptHookArgs) -> None:
            if args.exc_value and not isinstance(args.exc_value, SystemExit):
                self._add_exception(args.exc_value)
            before(args)

        # No handler: with one, logging.basicConfig would do nothing for the user's code.
        def record(*args: Any, **known: Any) -> logging.LogRecord:
            made = make(*args, **known)
            if made.levelno >= logging.ERROR:
                text = line(made.getMessage, self._hidden)
                self._records.add((made.name, kind_of(text)), text)
            return made

        threading.excepthook = of_thread
        logging.setLogRecordFactory(record)

    def _add_exception(self, error: BaseException) -> None:
        self._threads.add((name_of(error), class_of(error)), line(lambda: said(error), self._hidden))

    def sightings(self) -> list[Plain]:
        """Return each kind once, with how often it came, and what the first one said."""
        threads, records = self._threads, self._records
        return [
            *(
                (THREAD_RAISED, what, count, threads.examples[what, raised], {"raised": raised})
                for (what, raised), count in threads.counts.items()
            ),
            *(
                (LOGGED, kind, count, records.examples[name, kind], {"logger": name})
                for (name, kind), count in records.counts.items()
            ),
        ]
