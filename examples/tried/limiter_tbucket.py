"""tbucket 1.1.0 (with apsw): a bucket gives no more tokens than it has.

sqlstress app examples/tried/limiter_tbucket.py -c 4
"""

from tbucket import TokenBucket

from sqlstress import check, connect, note, setup, transaction

TOKENS, LONG_S = 200, 1e7


@setup
def table(database):
    bucket(database)


@connect
def bucket(database):
    bucket = TokenBucket(database, "somebody", TOKENS, LONG_S)
    bucket.db.setbusytimeout(30000)
    bucket.peek()
    return bucket


@transaction
def ask(bucket):
    given, *_ = bucket.try_consume(1)
    if given:
        note("given")


@check
def no_more_tokens_than_it_has(notes, database):
    assert len(notes.of("given")) <= TOKENS, f"{len(notes.of('given'))} were given, not {TOKENS}"
