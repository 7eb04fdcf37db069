"""How transactions begin: read from the statements of a connection, in their order."""

from __future__ import annotations

import re

_WORDS = re.compile(r"\s*(?:/\*.*?\*/\s*)*([A-Za-z]+)(?:\s+([A-Za-z]+))?", re.DOTALL)
_READS, _WRITES = ("SELECT", "VALUES", "WITH"), ("INSERT", "UPDATE", "DELETE", "REPLACE")
_HOW = ("DEFERRED", "IMMEDIATE", "EXCLUSIVE")
DEFERRED = "DEFERRED"
ALONE = "each statement alone"


class Begins:
    """What was seen of the transactions of a connection that write."""

    def __init__(self) -> None:
        self.ways: dict[str, None] = {}
        """How they begin, in the order in which it was first seen."""
        self.upgrades = 0
        """Those that began DEFERRED, read, and then wrote."""
        self._how = ""
        self._has_read = self._has_written = False

    def add(self, sql: str) -> None:
        """Take a statement that begins to run."""
        found = _WORDS.match(sql)
        if not found:
            return  # a comment: what a trigger does, and what we ask ourselves
        word, second = found[1].upper(), (found[2] or "").upper()
        if word == "BEGIN":
            self._begin(second if second in _HOW else DEFERRED)
        elif word == "SAVEPOINT" and not self._how:
            self._begin(DEFERRED)
        elif word in ("COMMIT", "END") or (word == "ROLLBACK" and second != "TO"):
            self._how = ""
        elif word in _WRITES or (word == "WITH" and _writes(sql)):
            self._write()
        elif word in _READS:
            self._has_read = True

    def _begin(self, how: str) -> None:
        self._how, self._has_read, self._has_written = how, False, False

    def _write(self) -> None:
        self.ways[self._how or ALONE] = None
        self.upgrades += self._how == DEFERRED and self._has_read and not self._has_written
        self._has_written = True


def _writes(sql: str) -> bool:
    """Return whether a statement that begins with WITH writes, as far as its words say it."""
    return any(re.search(rf"\b{word}\b", sql, re.IGNORECASE) for word in _WRITES)
