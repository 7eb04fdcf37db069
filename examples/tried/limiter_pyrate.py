"""pyrate-limiter 4.5.1: at most 20 calls of all processes pass in half a second.

sqlstress app examples/tried/limiter_pyrate.py -c 4
"""

from bisect import bisect_left
from time import time

from pyrate_limiter import Limiter, Rate, SQLiteBucket

from sqlstress import check, connect, note, transaction

LIMIT, WINDOW_S = 20, 0.5


@connect
def limiter(database):
    bucket = SQLiteBucket.init_from_file([Rate(LIMIT, int(WINDOW_S * 1000))], db_path=database)
    return Limiter(bucket)


@transaction
def ask(limiter):
    before = time()
    if limiter.try_acquire("somebody", blocking=False):
        note("passed", (before, time()))


@check
def no_window_has_more_calls_than_the_limit(query, notes):
    passed = sorted(notes.of("passed"))
    ends = sorted(after for _, after in passed)
    most = max((bisect_left(ends, begin + WINDOW_S) - i for i, (begin, _) in enumerate(passed)), default=0)
    assert most <= LIMIT, f"{most} calls passed in {WINDOW_S} s, not {LIMIT}"
