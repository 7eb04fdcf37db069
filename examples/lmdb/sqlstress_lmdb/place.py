"""A case's data in LMDB: an environment for each bucket, a file each, in one folder.

Modules that only the parent needs are imported when it uses them, so that a worker does not load them.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.targets.place import Place, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlstress.report import Check
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Definition
    from sqlstress_lmdb.keyvalue import LmdbStore
    from sqlstress_lmdb.table import LmdbTable


class LmdbSnapshot:
    """Seal of the files: only exchanged files can be distinguished from the workers' own changes."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self.seal()

    def seal(self) -> None:
        self._seal = Seal(self._paths)

    def exchanged(self) -> str | None:
        return self._seal.exchanged()

    def changed(self, pulse: Pulse) -> None:
        return None


class LmdbPlace(Place):
    """The files of a case."""

    stores: Literal[True] = True

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where
        names = ["kv.mdb"] if case.buckets == 1 else [f"kv_{bucket}.mdb" for bucket in range(case.buckets)]
        self.paths = [where / name for name in names]
        """The data, by bucket."""
        self.damaged = False
        """Whether a file was found damaged: then none of it is read any more."""

    def keyvalue(self, worker: int, begin: str, sample: Any) -> LmdbStore:
        from sqlstress_lmdb.keyvalue import LmdbStore

        return LmdbStore(self)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        from sqlstress_lmdb.environments import Held
        from sqlstress_lmdb.settings import flags_of

        with closing(Held(self.case, self.paths[0], **flags_of(self.case))) as held:
            begin = held.environment.begin

            def nothing() -> None:
                with begin():
                    pass

            yield nothing

    def seal(self) -> Seal:
        return Seal(self.paths)

    def table(self, key_type: str, value_size: int, counters: int) -> LmdbTable:
        from sqlstress_lmdb.table import LmdbTable

        return LmdbTable(self, key_type, value_size, counters)

    def schema(self) -> Sequence[Definition]:
        from sqlstress_lmdb.sound import names

        return names(self, self.paths[0])

    def snapshot(self, pulse: Pulse) -> LmdbSnapshot:
        return LmdbSnapshot(self.paths)

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        from sqlstress_lmdb.settings import differences

        return differences(self.case, effective)

    def integrity(self, level: str, pulse: Pulse) -> Check:
        from sqlstress_lmdb.sound import integrity_check

        check = integrity_check(self.paths, pulse)
        self.damaged = check.status == "failed"
        return check

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check:
        from sqlstress_lmdb.sound import schema_check

        return schema_check(self, created, pulse)

    def discard(self) -> None:
        from sqlstress.system.files import remove
        from sqlstress_lmdb.environments import LOCK

        for path in self.paths:
            remove(path)
            remove(path.with_name(path.name + LOCK))
