"""What SQLite finds in a file that a power cut left: it recovers the file on the way."""

from __future__ import annotations

from collections.abc import Callable

from sqlstress.experiments.power_loss.proof import Remains
from sqlstress.experiments.power_loss.transactions import READ, Row
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver

_COMPLAINTS = 2
_HAS_TABLE = "SELECT count(*) FROM sqlite_schema WHERE name = 'record'"


def examine(connect: Callable[[], Connection]) -> Remains:
    """Open a file, read all of it and check its structure."""
    driver, connection = load_driver("apsw"), None
    try:
        connection = connect()
        ((has_table,),) = connection.rows(_HAS_TABLE)
        contents = tuple(Row(*row) for row in connection.rows(READ)) if has_table else ()
        answers = [str(row[0]) for row in connection.rows(f"PRAGMA integrity_check({_COMPLAINTS})")]
    except Exception as error:
        if driver.result_code(error) is None:
            raise
        return Remains(None, (explain("apsw", error),))
    finally:
        if connection is not None:
            connection.close()
    return Remains(contents, () if answers == ["ok"] else tuple(answers))
