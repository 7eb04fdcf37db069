"""Histories of one key, written by hand in a tiny language.

    1w5@10-20 2w7@15-30 ?3w9 -> 2w7

Worker 1's write 5 began at 10 and was acknowledged at 20; worker 2's write 7 overlapped it; worker 3
died while its write 9 was under way ("x3@40": it had certainly ended at 40); write 7 of worker 2 was found in
the end. Instead of a write,
"preload" (the value from before the trial), "stranger" (a value that nobody wrote) or "nothing" (no
row) can be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlstress.engine.values import Stamp
from sqlstress.experiments.kv.work import PRELOADED, History

_WRITE = re.compile(r"(\d+)w(\d+)@(\d+)-(\d+)")
_STAMP = re.compile(r"\??(\d+)w(\d+)")
_END = re.compile(r"x(\d+)@(\d+)")

SLOT = 1
"""The key's slot; the slots beside it belong to keys that nobody writes to."""
SLOTS = 3


class Write(NamedTuple):
    """An acknowledged write."""

    worker: int
    sequence: int
    begin: int
    end: int


@dataclass
class Story:
    """What happened to one key, and what was found of it."""

    writes: list[Write]
    unknown: frozenset[Stamp]
    found: Stamp | None
    is_there: bool
    over: dict[int, int] = field(default_factory=dict)

    def history(self) -> History:
        """Return what the workers were told: of each worker only its last write is known."""
        workers = max((write.worker for write in self.writes), default=1)
        sequences, begins, ends = ([[0] * SLOTS for _ in range(workers)] for _ in range(3))
        latest = [0] * SLOTS
        latest[SLOT] = max((write.begin for write in self.writes), default=0)
        for worker, sequence, begin, end in self.writes:
            sequences[worker - 1][SLOT] = sequence
            begins[worker - 1][SLOT] = begin
            ends[worker - 1][SLOT] = end
        return History(sequences, begins, ends, latest, dict.fromkeys(self.unknown, SLOT), self.over)

    def rows(self) -> Iterator[tuple[str, int, Stamp | None]]:
        """Yield the rows that were found: those of the keys beside it are as they were preloaded."""
        for slot in range(SLOTS):
            if slot != SLOT:
                yield f"beside{slot}", slot, PRELOADED
            elif self.is_there:
                yield "k", slot, self.found


def read(text: str) -> Story:
    """Read a story."""
    happened, _, found = text.rpartition("->")
    writes, unknown, over = [], set(), {}
    for word in happened.split():
        write, stamp, end = (form.fullmatch(word) for form in (_WRITE, _STAMP, _END))
        if write:
            writes.append(Write(*map(int, write.groups())))
        elif stamp and word.startswith("?"):
            unknown.add(Stamp(*map(int, stamp.groups())))
        elif end:
            over[int(end[1])] = int(end[2])
        else:
            raise ValueError(f"{word!r} is not of the language")
    return Story(writes, frozenset(unknown), _found(found.strip()), found.strip() != "nothing", over)


def _found(word: str) -> Stamp | None:
    if word in ("stranger", "nothing"):
        return None
    if word == "preload":
        return PRELOADED
    stamp = _STAMP.fullmatch(word)
    if not stamp:
        raise ValueError(f"{word!r} can't be found")
    return Stamp(*map(int, stamp.groups()))
