"""Cases of scripts with real databases, for tests."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlstress.engine.protocols import Chunk
from sqlstress.experiments.sql.work import SqlWork
from sqlstress.experiments.sql.worker import SqlSource
from sqlstress.plan import cases_of
from sqlstress.report.case import Case
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.halves import open_source

Open = Callable[..., tuple[SqlWork, SqlSource]]
SETUP = """CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
INSERT INTO account VALUES (1, 100), (2, 100);
CREATE TABLE seen (value);
"""


def case_of(folder: Path, scripts: Mapping[str, str], **options: Any) -> Case:
    """Return the last case of the options; `scripts` are texts by name, with an optional weight after the
    name.
    """
    words = []
    for name, text in scripts.items():
        file = folder / name.partition("@")[0]
        file.write_text(text, encoding="utf-8")
        words.append(f"{folder / name}")
    setup = folder / "setup.sql"
    setup.write_text(SETUP, encoding="utf-8")
    given = {"script": words, "setup": str(setup), "concurrency": 2, "seed": 1, **options}
    return cases_of({name.replace("_", "-"): value for name, value in given.items()}, "sql")[-1]


def source_of(work: SqlWork, folder: Path, worker: int) -> SqlSource:
    """Open a worker's half of a trial."""
    source = open_source(work.case, folder, worker, 1, work.shared)
    assert isinstance(source, SqlSource)
    return source


def done(source: SqlSource, count: int) -> Chunk:
    """Let a worker do `count` transactions; failed ones are given up."""
    chunk = source.next_chunk(count)
    for index, (call, params) in enumerate(zip(chunk.calls, chunk.params, strict=True)):
        try:
            call(params)
        except Exception as error:
            source.give_up(chunk, index, error)
    return chunk


def rows(work: SqlWork, sql: str) -> list[tuple[Any, ...]]:
    assert isinstance(work.place, SqlitePlace)
    with work.place.opened() as connection:
        return connection.rows(sql)
