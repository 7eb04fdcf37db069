"""Scripts on a real database, during one test."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from sqlstress.experiments.sql.work import SqlWork
from sqlstress.experiments.sql.worker import SqlSource
from tests.experiments.sql.databases import Open, case_of, source_of
from tests.halves import open_work
from tests.pulses import nothing


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens both halves of one or several scripts; all is removed after the test."""
    with ExitStack() as closed:

        def start(
            scripts: str | Mapping[str, str], worker: int = 1, **options: Any
        ) -> tuple[SqlWork, SqlSource]:
            texts = {"a.sql": scripts} if isinstance(scripts, str) else scripts
            work = open_work(case_of(tmp_path, texts, **options), tmp_path, 1, {})
            assert isinstance(work, SqlWork)
            closed.callback(work.discard)
            work.prepare(nothing)
            return work, closed.enter_context(closing(source_of(work, tmp_path, worker)))

        yield start
