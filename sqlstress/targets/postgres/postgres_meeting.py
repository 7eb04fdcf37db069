"""Hosts meet at the server that they are to load: who is ready, who is gone, and when all begin.

Each host keeps a session that holds a shared lock on the meeting's schema. Where a process or its machine is
gone, the server ends the session, and nobody waits for that host any longer. Who takes part in a trial, and
when it begins, is one row, which whoever sees that nobody is waited for writes first. The last one to leave
drops the schema; if all were killed, the next start of anybody's does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2s
from typing import NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from sqlstress.errors import EnvironmentFailure
from sqlstress.report.results import Together
from sqlstress.statistics.units import NS_PER_S
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.meeting import Invitation
from sqlstress.targets.postgres.dialect import PREFIX, explained, key_of
from sqlstress.targets.postgres.own_schema import COMMENT, Connection, connect, drop_if_alone, first

# What hosts that meet say to the server: {} is the meeting's schema.

ALIVE = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET synchronous_commit = off"
)
"""So the server finds within seconds that a machine is gone."""
TABLES = (
    "CREATE TABLE IF NOT EXISTS {}.ready (host text PRIMARY KEY, session int, step int, lead_us bigint)",
    "CREATE TABLE IF NOT EXISTS {}.began (step int PRIMARY KEY, starts_us bigint, hosts text[])",
)
READY = (
    "INSERT INTO {}.ready VALUES (%s, pg_backend_pid(), %s, %s) ON CONFLICT (host) DO UPDATE "
    "SET session = excluded.session, step = excluded.step, lead_us = excluded.lead_us"
)
SEEN = (
    "SELECT host, step, lead_us, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = session "
    "AND classid::bigint = %s AND objid::bigint = %s AND granted) FROM {}.ready"
)
BEGIN = (
    "INSERT INTO {}.began VALUES (%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %s, %s) "
    "ON CONFLICT DO NOTHING"
)
BEGAN = "SELECT starts_us, hosts FROM {}.began WHERE step = %s"

POLL_S = 0.02
PATIENCE_S = 120.0
"""How long a host that lives, or has never come, is waited for after oneself is ready."""
AGAIN_S = 5.0
"""How long it is waited for a host that is gone and has been in the trial before."""
MARGIN_S = 0.2
"""How long before its begin a start is agreed, beside what the hosts need: all are to read of it by then."""
_WHAT = "the hosts can't meet at the server"


class _Start(NamedTuple):
    starts_ns: int
    """By the server's clock."""
    hosts: tuple[str, ...]


class _Seen(NamedTuple):
    """A host that has come."""

    step: int
    """For which trial it is ready, or was."""
    lead_us: int
    lives: bool


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise EnvironmentFailure(f"{_WHAT}: {explained(error)}.") from error


class PostgresMeeting:
    """A host's session at the meeting: see `Meeting`."""

    def __init__(
        self,
        dsn: str,
        invited: Invitation,
        patience_s: float = PATIENCE_S,
        own: Callable[[], int] = time.perf_counter_ns,
        of_day: Callable[[], int] = time.time_ns,
    ) -> None:
        self._dsn, self._invited, self._patience_s = dsn, invited, patience_s
        self._own, self._of_day = own, of_day
        self.schema = PREFIX + blake2s(invited.meeting.encode(), digest_size=6).hexdigest()
        self._connection: Connection | None = None
        self._before: Reading | None = None
        self._started, self._step = _Start(0, ()), 0

    def expect(self, step: int) -> None:
        with _explained():
            start = self._began(self._joined(), step)
        if start:
            raise self._missed("had begun before this host was ready")

    def start_ns(self, step: int, lead_s: float, length_s: float, pulse: Pulse) -> int:
        with _explained():
            connection = self._joined()
            self._before = self._reading(connection)
            connection.execute(self._sql(READY), (self._invited.host, step, int(lead_s * 1e6)))
            start = self._awaited(connection, step, pulse)
        starts_ns = start.starts_ns - self._before.offset_ns
        if self._invited.host not in start.hosts:
            why = "began without this host, which was late"
        elif self._own() + lead_s * NS_PER_S > starts_ns:
            why = "began before this host had heard of it"
        else:
            self._started, self._step = start, step
            return starts_ns
        # Whatever this host does next is not to be load in their window.
        while self._own() < starts_ns + length_s * NS_PER_S:
            pulse()
            time.sleep(POLL_S)
        raise self._missed(why)

    def together(self, opens_ns: int, closes_ns: int) -> Together:
        """See `Meeting`. Clocks that went apart meanwhile show in the window's length."""
        before = self._before
        assert before
        with _explained():
            after = self._reading(self._joined())
        return Together(
            meeting=self._invited.meeting,
            step=self._step,
            host=self._invited.host,
            asked=self._invited.asked,
            began=self._started.hosts,
            opens_ns=opens_ns + before.offset_ns,
            closes_ns=closes_ns + after.offset_ns,
            error_ns=max(before.error_ns, after.error_ns),
            clock_ns=before.ahead_ns,
            clock_error_ns=before.ahead_error_ns,
        )

    def close(self) -> None:
        """Let the others go on; whoever is the last drops what was made for the meeting."""
        if self._connection is None:
            return
        try:
            self._connection.execute("SELECT pg_advisory_unlock_shared(%s)", (key_of(self.schema),))
            drop_if_alone(self._connection, self.schema)
        except psycopg.Error:
            pass  # the server is gone, or stopped: the next start drops it
        finally:
            self._connection.close()
            self._connection = None

    def _joined(self) -> Connection:
        """Return our session, anew if the server has ended it. Raises EnvironmentFailure, psycopg.Error.

        It holds the meeting's lock, and makes its tables if nobody has.
        """
        if self._connection is not None:
            try:
                self._connection.execute("SELECT 1")
                return self._connection
            except psycopg.Error:
                self._connection.close()
                self._connection = None
        connection = connect(self._dsn, _WHAT)
        try:
            connection.execute(ALIVE)
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (key_of(self.schema),))
            with connection.transaction():
                # Two that make the same at once would fail.
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (key_of(f"{self.schema} made"),))
                connection.execute(self._sql("CREATE SCHEMA IF NOT EXISTS {}"))
                connection.execute(self._sql("COMMENT ON SCHEMA {} IS {}", Literal(COMMENT)))
                for table in TABLES:
                    connection.execute(self._sql(table))
        except psycopg.Error:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _awaited(self, connection: Connection, step: int, pulse: Pulse) -> _Start:
        lock = key_of(self.schema) & (1 << 64) - 1
        begun = time.monotonic()
        while (start := self._began(connection, step)) is None:
            waited_s = time.monotonic() - begun
            rows = connection.execute(self._sql(SEEN), (lock >> 32, lock & 0xFFFFFFFF)).fetchall()
            seen = {host: _Seen(*of_host) for host, *of_host in rows}
            if self._is_awaited(seen, step, waited_s):
                pulse()
                time.sleep(POLL_S)
                continue
            if len(seen) == 1 < len(self._invited.asked):
                raise EnvironmentFailure(
                    f"no other host reached this server within {waited_s:.0f} s. Check that the dsn of "
                    "the plan leads all hosts to the same server."
                )
            ready = {name: host.lead_us for name, host in seen.items() if host.step == step and host.lives}
            ahead_us = int(MARGIN_S * 1e6) + 2 * max(ready.values(), default=0)
            connection.execute(self._sql(BEGIN), (step, ahead_us, sorted(ready)))
        return start

    def _is_awaited(self, seen: Mapping[str, _Seen], step: int, waited_s: float) -> bool:
        """Say whether somebody is still to come: who is there and not ready, or has never been there."""
        if waited_s > self._patience_s:
            return False
        for name in self._invited.asked:
            host = seen.get(name)
            if host is None or (host.lives and host.step < step):
                return True
            # One that the server has ended, and not its host, is there again at once.
            if not host.lives and name in self._started.hosts and waited_s < AGAIN_S:
                return True
        return False

    def _began(self, connection: Connection, step: int) -> _Start | None:
        row = connection.execute(self._sql(BEGAN), (step,)).fetchone()
        return _Start(row[0] * 1000, tuple(row[1])) if row else None

    def _reading(self, connection: Connection) -> Reading:
        return read_clock(lambda: int(first(connection, CLOCK_SQL)[0]), self._own, self._of_day)

    def _sql(self, text: str, *more: Literal) -> psycopg.sql.Composed:
        return SQL(text).format(Identifier(self.schema), *more)

    def _missed(self, how: str) -> EnvironmentFailure:
        return EnvironmentFailure(f"it missed the common start. The other hosts {how}.")


# How far a host's clocks are from the server's, by round trips: what the server says lies between two looks.
#
# Half of the shortest round trip is a bound, not a guess: it holds also where the ways there and back differ.


ROUNDS = 32
LONGEST_NS = NS_PER_S
"""After so long no further round trip is made, if there were a few."""
FEWEST = 4
SERVERS_NS = 1000
"""What the server's clock is read in."""
CLOCK_SQL = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Reading(NamedTuple):
    """The server's clock beside our own two."""

    offset_ns: int
    """What is added to perf_counter_ns to get the server's clock, in ns since 1970."""
    error_ns: int
    """By how much that may be off at most."""
    ahead_ns: int
    """How much the host's own clock of the day is ahead of the server's."""
    ahead_error_ns: int
    """By how much that may be off at most."""


def read_clock(
    server_us: Callable[[], int],
    own: Callable[[], int] = time.perf_counter_ns,
    of_day: Callable[[], int] = time.time_ns,
) -> Reading:
    """Return the best of some readings; `server_us` asks the server, in µs since 1970."""
    grain_ns = int(time.get_clock_info("time").resolution * NS_PER_S)
    best: tuple[int, int, int, int] | None = None
    begun = own()
    for number in range(ROUNDS):
        here, day, server, back = own(), of_day(), server_us(), own()
        if best is None or back - here < best[0]:
            best = back - here, here, day, server * 1000
        if number >= FEWEST and back - begun > LONGEST_NS:
            break
    assert best
    trip_ns, here, day, server_ns = best
    error_ns = trip_ns // 2 + SERVERS_NS
    ahead_ns = day + trip_ns // 2 - server_ns
    return Reading(server_ns - here - trip_ns // 2, error_ns, ahead_ns, error_ns + grain_ns)
