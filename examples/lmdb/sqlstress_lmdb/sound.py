"""Checks of LMDB's files: integrity, with the verifier of the binding, and the expected databases.

The verifier reads the bytes itself: LMDB trusts its map, and a process that reads a damaged file through LMDB
may crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.report import Check
from sqlstress.report.results import CheckCounter
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import call_in_subprocess
from sqlstress_lmdb.environments import Held
from sqlstress_lmdb.settings import flags_of

if TYPE_CHECKING:
    from sqlstress.targets.place import Definition
    from sqlstress_lmdb.place import LmdbPlace

SMALL = 16 << 20
"""Maximum size of a file that this process verifies, in under a second; larger files need a child process."""


class Damaged(Exception):
    """A file is damaged, and is not read any more."""


def integrity_check(paths: Sequence[Path], pulse: Pulse) -> Check:
    """Verify every file."""
    tally = CheckCounter("lmdb.verify")
    for path in paths:
        pulse()
        tally.checked += 1
        for complaint in _complaints(path, pulse):
            tally.problem(f"{path.name}: {complaint}")
    return tally.check()


def _complaints(path: Path, pulse: Pulse) -> list[str]:
    if not path.exists():
        return ["the file is gone"]
    return verified(path) if path.stat().st_size <= SMALL else call_in_subprocess(pulse, verified, path)


def verified(path: Path) -> list[str]:
    """Return the problems of a file."""
    from lmdb.verify import VerifyError, verify

    try:
        return list(map(str, verify(str(path), subdir=False)))  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)]


def check_readable(place: LmdbPlace) -> None:
    """Raise Damaged if a place has damaged files."""
    if place.damaged:
        raise Damaged("they are not read after what lmdb.verify found")


def names(place: LmdbPlace, path: Path) -> list[Definition]:
    """Return the names of the databases in a file."""
    check_readable(place)
    with closing(Held(place.case, path, **flags_of(place.case))) as held, held.environment.begin() as txn:
        return [(bytes(name).decode(errors="replace"),) for name in txn.cursor().iternext(values=False)]


def schema_check(place: LmdbPlace, created: Sequence[Definition], pulse: Pulse) -> Check:
    """Check that every file has exactly the databases that were created when the trial began."""
    tally = CheckCounter("schema")
    for path in place.paths:
        pulse()
        found = names(place, path)
        tally.checked += len(created)
        for (name,) in set(created) - set(found):
            tally.problem(f"{path.name} lacks the database {name}")
        for (name,) in set(found) - set(created):
            tally.problem(f"{path.name} holds the database {name}, which was added later")
    return tally.check()
