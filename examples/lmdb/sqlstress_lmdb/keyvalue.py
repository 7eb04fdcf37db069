"""A worker's view of LMDB's files: a transaction for each operation, keys and values as bytes.

A writer waits in the lock's own queue, without a timeout: there is nothing like BUSY. A read takes a
snapshot, and does not wait. A counter is read and written in one write transaction, whatever --begin says:
LMDB has no other way to write a value that depends on a read.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from sqlstress_lmdb.environments import COUNTER, KV, Held
from sqlstress_lmdb.settings import flags_of, read_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlstress.targets.views import Operation
    from sqlstress_lmdb.place import LmdbPlace

_NUMBER = Struct(">q")
"""Big-endian, so that the order of the bytes is that of the numbers."""
pack = _NUMBER.pack


def unpack(data: bytes) -> int:
    """Return the number that `pack` encoded. Raises struct.error if there are not eight bytes."""
    return int(_NUMBER.unpack(data)[0])


Coding = tuple["Callable[[Any], bytes]", "Callable[[bytes], Any]"]
_AS_IT_IS: Coding = (bytes, bytes)
KEYS: dict[str, Coding] = {"int": (pack, unpack), "text": (str.encode, bytes.decode), "blob": _AS_IT_IS}
"""Type of a key → its encoder to the file's bytes, and its decoder."""


def coding_of_values(value_size: int) -> Coding:
    """Return the encoder and the decoder of values of this size; values of eight bytes are numbers."""
    return (pack, unpack) if value_size == 8 else _AS_IT_IS


class LmdbStore:
    """Open buckets of a place, for one worker. Raises EnvironmentFailure."""

    def __init__(self, place: LmdbPlace) -> None:
        self._held: list[Held] = []
        self._keys, self._values = (
            KEYS[place.case.spec.key_type],
            coding_of_values(place.case.spec.value_size),
        )
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []
        try:
            for path in place.paths:
                self._held.append(Held(place.case, path, **flags_of(place.case)))
                self._prepare(self._held[-1])
        except BaseException:
            self.close()
            raise

    def _prepare(self, held: Held) -> None:
        begin, kv = held.environment.begin, held.database(KV)
        self.gets.append(_get(begin, kv, self._keys, self._values))
        self.pairs.append(_pair(begin, kv, self._keys, self._values))
        self.puts.append(_put(held, kv, self._keys, self._values))
        self.batches.append(_batch(held, kv, self._keys, self._values))
        self.updates.append(_update(held))

    def was_busy(self, error: Exception) -> bool:
        return False

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        answers = [read_back(held.environment.flags()) for held in self._held]
        return {name: " / ".join(dict.fromkeys(answer[name] for answer in answers)) for name in answers[0]}

    def close(self) -> None:
        while self._held:
            self._held.pop().close()


def _get(begin: Any, kv: Any, keys: Coding, values: Coding) -> Operation:
    encode, decode = keys[0], values[1]

    def get(params: tuple[Any]) -> Any:
        with begin(kv) as txn:
            found = txn.get(encode(*params))
        return None if found is None else decode(found)

    return get


def _pair(begin: Any, kv: Any, keys: Coding, values: Coding) -> Operation:
    encode, decode = keys[0], values[1]

    def pair(wanted: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        with begin(kv) as txn:
            found = [(key, txn.get(encode(key))) for key in wanted]
        return [(key, decode(value)) for key, value in found if value is not None]

    return pair


def _put(held: Held, kv: Any, keys: Coding, values: Coding) -> Operation:
    begin, full = held.environment.begin, held.full
    encode_key, encode = keys[0], values[0]

    def put(row: tuple[Any, Any]) -> None:
        key, value = row
        try:
            with begin(kv, write=True) as txn:
                txn.put(encode_key(key), encode(value))
        except full as error:
            held.make_room(error)
            put(row)

    return put


def _batch(held: Held, kv: Any, keys: Coding, values: Coding) -> Operation:
    begin, full = held.environment.begin, held.full
    encode_key, encode = keys[0], values[0]

    def replace_all(rows: list[tuple[Any, Any]]) -> None:
        try:
            with begin(kv, write=True) as txn:
                put = txn.put
                for key, value in rows:
                    put(encode_key(key), encode(value))
        except full as error:
            held.make_room(error)
            replace_all(rows)

    return replace_all


def _update(held: Held) -> Operation:
    begin, full = held.environment.begin, held.full
    counters: list[Any] = []

    def increment(counter: tuple[int]) -> None:
        if not counters:  # most cases have no counters
            counters.append(held.database(COUNTER))
        key = pack(*counter)
        try:
            with begin(counters[0], write=True) as txn:
                txn.put(key, pack(unpack(txn.get(key)) + 1))
        except full as error:
            held.make_room(error)
            increment(counter)

    return increment
