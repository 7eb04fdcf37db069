"""Tasks that share a connection whose statements another thread runs, as with aiosqlite."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sqlstress
from sqlstress.recording.callers import is_background_thread
from tests.own_app import findings_of
from tests.rows import thorough

LIBRARY = '''
import asyncio, sqlite3
from queue import SimpleQueue
from threading import Thread

class AsyncConnection:
    """Run each statement in a thread of the connection, as aiosqlite does."""

    def __init__(self, database):
        self.queue = SimpleQueue()
        Thread(target=self.work, args=(database,), daemon=True).start()

    def work(self, database):
        connection = sqlite3.connect(database, timeout=60)
        while True:
            future, name, arguments = self.queue.get()
            result = getattr(connection, name)(*arguments)
            future.get_loop().call_soon_threadsafe(future.set_result, result)

    async def run(self, name, *arguments):
        future = asyncio.get_running_loop().create_future()
        self.queue.put((future, name, arguments))
        return await future
'''

PROGRAM = """
import asyncio, sqlite3, sys
sys.path.insert(0, {library!r})
from async_library import AsyncConnection
from sqlstress import setup, connect, transaction

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE wallet (id INTEGER PRIMARY KEY, coins INTEGER)")
        db.executemany("INSERT INTO wallet VALUES (?, 100)", [(n,) for n in range(5)])

@connect
def start(database):
    return asyncio.new_event_loop(), AsyncConnection(database)

async def gift(db, lock, person):
    async with lock:
        await {give}db.run("execute", "UPDATE wallet SET coins = coins - 1 WHERE id = ?", (person,)){end}
        await asyncio.sleep(0)
        await {give}db.run("execute", "UPDATE wallet SET coins = coins + 1 WHERE id = ?", (4 - person,)){end}
        await db.run("commit")

async def serve(db):
    lock = {lock}
    await asyncio.gather(*(gift(db, lock, person) for person in range(4)))

@transaction
def requests(given):
    loop, db = given
    loop.run_until_complete(serve(db))
"""
NO_LOCK, LOCK = "asyncio.Semaphore(4)", "asyncio.Lock()"


def shared(tmp_path: Path, lock: str, give: str = "", end: str = "") -> list[sqlstress.Finding]:
    library, file = tmp_path / "library", tmp_path / "app" / "program.py"
    library.mkdir()
    file.parent.mkdir()
    library.joinpath("async_library.py").write_text(LIBRARY, encoding="utf-8")
    program = PROGRAM.format(library=str(library), lock=lock, give=give, end=end)
    file.write_text(program, encoding="utf-8")
    report = sqlstress.measure("app", file=str(file), concurrency=1, ops=8, repeat=1, directory=tmp_path)
    assert not findings_of(report, "not-rehearsed")
    return [finding for finding in report.findings if finding.facts.get("kind") == "connection-mixed"]


def test_tasks_that_write_in_one_transaction_are_named_with_their_line(tmp_path: Path) -> None:
    (found,) = shared(tmp_path, NO_LOCK)
    line = PROGRAM[: PROGRAM.index("coins - 1")].count("\n") + 1
    assert found.facts["then"].at == f"program.py:{line}"
    assert "tasks of requests share a connection" in found.text


@pytest.mark.parametrize(("give", "end"), [("", ""), thorough("asyncio.wait_for(", ", 60)")])
def test_tasks_with_a_lock_for_each_transaction_are_not_named(give: str, end: str, tmp_path: Path) -> None:
    assert shared(tmp_path, LOCK, give, end) == []


IN_HELPER = """
import asyncio, sqlite3
from sqlstress import setup, connect, transaction

working = set()

@setup
def make(database):
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE wallet (id INTEGER PRIMARY KEY, coins INTEGER)")
        db.executemany("INSERT INTO wallet VALUES (?, 100)", [(n,) for n in range(5)])

@connect
def start(database):
    db = sqlite3.connect(database, timeout=60, isolation_level=None, check_same_thread=False)
    return asyncio.new_event_loop(), db

async def gift(db, lock, begin_lock, person):
    async with lock:
        working.add(person)
        async with begin_lock:
            if not db.in_transaction:
                await asyncio.to_thread(db.execute, "BEGIN IMMEDIATE")
        db.execute("UPDATE wallet SET coins = coins - 1 WHERE id = ?", (person,))
        await asyncio.sleep(0)
        db.execute("UPDATE wallet SET coins = coins + 1 WHERE id = ?", (4 - person,))
        working.discard(person)
        if not working:
            db.commit()

async def serve(db):
    lock, begin_lock = {lock}, asyncio.Lock()
    await asyncio.gather(*(gift(db, lock, begin_lock, person) for person in range(4)))

@transaction
def requests(given):
    loop, db = given
    loop.run_until_complete(serve(db))
"""
"""Program whose tasks run BEGIN in a helper thread, and the other statements in the main thread."""


@pytest.mark.parametrize(("lock", "is_mixed"), [(LOCK, False), (NO_LOCK, True)])
def test_begin_in_a_helper_thread_belongs_to_its_task(lock: str, is_mixed: bool, tmp_path: Path) -> None:
    file = tmp_path / "app" / "program.py"
    file.parent.mkdir()
    file.write_text(IN_HELPER.format(lock=lock), encoding="utf-8")
    report = sqlstress.measure("app", file=str(file), concurrency=1, ops=8, repeat=1, directory=tmp_path)
    assert not findings_of(report, "not-rehearsed")
    kinds = {finding.facts.get("kind") for finding in report.findings}
    assert ("connection-mixed" in kinds) == is_mixed


def left_open(tmp_path: Path, rescue: str) -> list[sqlstress.Finding]:
    """Return the findings on open transactions of a program whose tasks are cancelled in the middle."""
    library, file = tmp_path / "library", tmp_path / "app" / "program.py"
    library.mkdir()
    file.parent.mkdir()
    library.joinpath("async_library.py").write_text(LIBRARY, encoding="utf-8")
    program = PROGRAM.format(library=str(library), lock=LOCK, give="", end="")
    program = program.replace("await asyncio.sleep(0)", f"await pause(db, {rescue})") + PAUSE
    program = program.replace("range(4)))", "range(1)), return_exceptions=True)")
    file.write_text(program, encoding="utf-8")
    report = sqlstress.measure("app", file=str(file), concurrency=1, ops=8, repeat=1, directory=tmp_path)
    return [finding for finding in report.findings if finding.facts.get("tasks")]


PAUSE = """
async def pause(db, rescue):
    if rescue:
        await db.run("rollback")
    raise asyncio.CancelledError
"""


def test_transaction_of_a_cancelled_task_is_left_open(tmp_path: Path) -> None:
    (found,) = left_open(tmp_path, "False")
    assert "BaseException" in found.text


def test_transaction_of_a_cancelled_task_that_rolls_back_is_not_left_open(tmp_path: Path) -> None:
    assert left_open(tmp_path, "True") == []


def test_thread_is_awaited_if_the_main_thread_waits_a_little_later() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(is_background_thread).result()


def test_thread_is_in_the_background_while_the_main_thread_runs_other_code() -> None:
    answers: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: answers.append(is_background_thread()))
        while not answers:
            pass
    assert answers == [True]
