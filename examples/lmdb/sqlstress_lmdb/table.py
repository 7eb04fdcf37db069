"""The parent's key-value view of LMDB's files: it creates and fills them, and reads them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sqlstress.system.interrupt import Pulse
from sqlstress.targets.views import TableView
from sqlstress_lmdb.environments import COUNTER, KV, Held
from sqlstress_lmdb.keyvalue import KEYS, coding_of_values, pack, unpack
from sqlstress_lmdb.place import LmdbPlace
from sqlstress_lmdb.settings import FLAGS, checked, flags_of
from sqlstress_lmdb.sound import check_readable

_PIECE = 8 << 20
"""Approximate bytes of rows that preloading writes in one transaction."""
_KEY_BYTES = 24


class LmdbTable(TableView):
    """The databases of keys and values, and of counters, in each environment of a place."""

    def __init__(self, place: LmdbPlace, key_type: str, value_size: int, counters: int) -> None:
        self._place, self._value_size, self._counters = place, value_size, counters
        self._key, self._value = KEYS[key_type], coding_of_values(value_size)

    def create(self, pulse: Pulse) -> None:
        self.fill([()] * len(self._place.paths), pulse)

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        checked(self._place.case)
        self._place.discard()
        for path, rows in zip(self._place.paths, buckets, strict=True):
            self._fill_file(path, rows)
            pulse()

    def name(self, bucket: int) -> str:
        return self._place.paths[bucket].name

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        key_of, value_of = self._key[1], self._value[1]
        for key, value in self._pairs(bucket, KV):
            yield key_of(key), value_of(value)

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        return [(unpack(key), unpack(value)) for key, value in self._pairs(bucket, COUNTER)]

    def _pairs(self, bucket: int, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a database, by key."""
        check_readable(self._place)
        with closing(self._open_held(bucket)) as held:
            database = held.database(name)
            with held.environment.begin(database) as txn:
                yield from txn.cursor()

    def _open_held(self, bucket: int) -> Held:
        return Held(self._place.case, self._place.paths[bucket], **flags_of(self._place.case))

    def _fill_file(self, path: Path, rows: Iterable[tuple[Any, Any]]) -> None:
        """Create a file. It is not measured, so it is synced once, at its end."""
        with closing(Held(self._place.case, path, create=True, **FLAGS["off"])) as held:
            kv = held.environment.open_db(KV)
            if self._counters:
                counter = held.environment.open_db(COUNTER)
                with held.environment.begin(counter, write=True) as txn:
                    for number in range(self._counters):
                        txn.put(pack(number), pack(0))
            self._insert(held.environment, kv, rows)
            held.environment.sync(True)

    def _insert(self, environment: Any, kv: Any, rows: Iterable[tuple[Any, Any]]) -> None:
        at_once = max(1, _PIECE // (_KEY_BYTES + self._value_size))
        encode_key, encode = self._key[0], self._value[0]
        rows = iter(rows)
        for first in rows:
            with environment.begin(kv, write=True) as txn:
                for key, value in chain((first,), islice(rows, at_once - 1)):
                    txn.put(encode_key(key), encode(value))
