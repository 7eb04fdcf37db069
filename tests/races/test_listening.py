"""A connection that threads use is traced, and no thread is blocked by that.

SQLite's trace waits for Python's lock with the connection's mutex; sqlite3 binds a value the other way round.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import mostly_thorough, thorough
from tests.run_python import run_python

TRACED = """
import asyncio, faulthandler, json, sqlite3, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from sqlstress.races.tracing import Tracer
faulthandler.dump_traceback_later(60, exit=True)

tracer = Tracer()
tracer.start()
sqlite3.connect("app.db").execute("CREATE TABLE t (x)").connection.close()

def connect(is_for_all):
    # autocommit: what threads do with a shared transaction is their own affair
    options = {"isolation_level": None, "timeout": 60}
    connection = sqlite3.connect("app.db", check_same_thread=not is_for_all, **options)
    connection.execute("PRAGMA synchronous=OFF")
    return connection

def work(connection):
    for number in range(10):
        # Python 3.12 and later may let two threads run one prepared statement, which SQLite refuses.
        with suppress(sqlite3.Error):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        with suppress(sqlite3.Error):
            connection.execute("SELECT x FROM t WHERE rowid = ?", (number,)).fetchall()

exec(sys.argv[1])
found = []
for _ in range(int(sys.argv[2])):
    tracer.begin_call()
    call()
    found.append(len(tracer.call))
faulthandler.cancel_dump_traceback_later()
print(json.dumps([tracer.is_shared, found]))
"""
CALLS = 20
"""Number of calls by threads at once: in each of them two threads may wait for each other."""
FEW_CALLS = 4
"""Number of calls if each must have all its statements."""
WHOLE = [20] * FEW_CALLS
"""Statements of each call, if all of them are recorded."""


def trace_calls(code: str, folder: Path, calls: int = CALLS) -> Any:
    """Return whether a process let go of a connection, and the statements that it recorded of each call."""
    return json.loads(run_python(folder, TRACED, code, str(calls)))


SHARED = "shared = connect(is_for_all=True)\n"
AT_ONCE = {
    "several threads": """
def call():
    threads = [threading.Thread(target=work, args=(shared,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""",
    "one beside the main one": """
def call():
    thread = threading.Thread(target=work, args=(shared,))
    thread.start()
    work(shared)
    thread.join()
""",
    "those of an executor": """
def call():
    with ThreadPoolExecutor(3) as executor:
        list(executor.map(work, [shared] * 6))
""",
    "those of an executor that were there before": """
executor = ThreadPoolExecutor(3)
list(executor.map(time.sleep, [0.05] * 3))
shared = connect(is_for_all=True)

def call():
    list(executor.map(work, [shared] * 6))
""",
    "those of an event loop": """
async def both():
    await asyncio.gather(asyncio.to_thread(work, shared), asyncio.to_thread(work, shared))

def call():
    asyncio.run(both())
""",
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", mostly_thorough(AT_ONCE, ["several threads", "those of an executor that were there before"])
)
def test_threads_that_use_a_connection_at_once_never_block(name: str, tmp_path: Path) -> None:
    let_go, statements = trace_calls(SHARED + AT_ONCE[name], tmp_path)
    assert len(statements) == CALLS
    # With an executor, one thread may have finished before the next begins.
    assert let_go or "those of" in name


IN_TURN = {
    "a thread that is waited for": """
def call():
    asyncio.run(asyncio.to_thread(work, shared))
""",
    "beside one that sleeps": """
threading.Thread(target=lambda: time.sleep(600), daemon=True).start()

def call():
    work(shared)
""",
    "beside one that waits": """
threading.Thread(target=threading.Event().wait, daemon=True).start()

def call():
    work(shared)
""",
    "the main one alone": """
def call():
    work(shared)
""",
}


@pytest.mark.parametrize(
    "name", mostly_thorough(IN_TURN, ["a thread that is waited for", "beside one that waits"])
)
def test_connection_used_by_one_thread_at_a_time_is_recorded_whole(name: str, tmp_path: Path) -> None:
    before, _, now = IN_TURN[name].partition("\ndef call")
    assert trace_calls(f"{before}\n{SHARED}\ndef call{now}", tmp_path, FEW_CALLS) == [False, WHOLE]


def test_connection_for_one_thread_is_traced_whatever_others_do(tmp_path: Path) -> None:
    code = """
sys.setswitchinterval(1e-4)

def spin():
    while True:
        sum(range(1000))

own = connect(is_for_all=False)
threading.Thread(target=spin, daemon=True).start()

def call():
    work(own)
"""
    assert trace_calls(code, tmp_path, FEW_CALLS) == [False, WHOLE]


OWN = {
    "threads of an executor": """
executor = ThreadPoolExecutor(3)

def call():
    list(executor.map(lambda _: work(own()), range(6)))
""",
    "threads of each call": """
def call():
    threads = [threading.Thread(target=lambda: work(own())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""",
    "threads of an event loop": """
async def both():
    await asyncio.gather(*(asyncio.to_thread(lambda: work(own())) for _ in range(6)))

def call():
    asyncio.run(both())
""",
}
LOCAL = """
sys.setswitchinterval(1e-4)
local = threading.local()

def own():
    if not hasattr(local, "connection"):
        local.connection = connect(is_for_all=True)
    return local.connection
"""


@pytest.mark.parametrize("name", mostly_thorough(OWN, ["threads of each call"]))
def test_connection_of_one_thread_is_traced_if_others_may_use_it(name: str, tmp_path: Path) -> None:
    let_go, statements = trace_calls(LOCAL + OWN[name], tmp_path, FEW_CALLS)
    assert not let_go
    assert min(statements) > 5 * 20  # a lock can keep a statement from being explained


MADE_BY_THE_FIRST = """
sys.setswitchinterval(1e-5)
executor = ThreadPoolExecutor(4)
made = []

def use():
    if not made:
        made.append(connect(is_for_all=True))
    work(made[0])
    with suppress(sqlite3.Error, ValueError), made[0]:
        made[0].execute("INSERT INTO t VALUES (?)", (1,))
        raise ValueError

def call():
    made.clear()
    for future in [executor.submit(use) for _ in range(8)]:
        with suppress(sqlite3.Error):
            future.result()
"""


def test_threads_that_share_an_opened_connection_never_block(tmp_path: Path) -> None:
    let_go, statements = trace_calls(MADE_BY_THE_FIRST, tmp_path)
    assert let_go
    assert len(statements) == CALLS


READS_SLOWLY = """
def read(connection, wait):
    with suppress(sqlite3.Error):
        for row in connection.execute("SELECT x FROM t LIMIT 50"):
            wait(0.0002)

def call():
    shared = connect(is_for_all=True)
    work(shared)
    threads = [threading.Thread(target=read, args=(shared, WAIT))]
    threads.append(threading.Thread(target=work, args=(shared,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.close()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("wait", [thorough("time.sleep"), "lambda seconds: sum(range(2000))"])
def test_thread_that_is_slow_between_rows_never_blocks(wait: str, tmp_path: Path) -> None:
    is_shared, _ = trace_calls(READS_SLOWLY.replace("WAIT", wait), tmp_path)
    assert is_shared


def test_traced_thread_counts_as_working(tmp_path: Path) -> None:
    code = """
from sqlstress.recording.threads import other_threads_running
is_at_work = []
def spin():
    while not is_at_work:
        pass
def call():
    thread = threading.Thread(target=spin)
    thread.start()
    is_at_work.append(other_threads_running({thread.ident}))
    thread.join()
    assert is_at_work.pop()
"""
    trace_calls(code, tmp_path)
