"""Logs of disk operations, drawn by Hypothesis, and a plain model of what they do."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from sqlstress.targets.sqlite.disk_model import (
    Create,
    Delete,
    Operation,
    Sync,
    SyncFolder,
    Truncate,
    Write,
    WriteBack,
)

NAMES = ("a", "b", "c")
MOST_BYTES = 40
SECTOR = 8


@dataclass
class Plain:
    """What programs see, and what they were promised: nothing clever."""

    names: dict[str, int] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    safe_names: dict[str, int] = field(default_factory=dict)
    safe_files: dict[int, bytes] = field(default_factory=dict)

    def do(self, operation: Operation) -> None:
        match operation:
            case Create(name, file):
                self.names[name], self.files[file], self.safe_files[file] = file, b"", b""
            case Delete(name):
                del self.names[name]
            case Write(file, offset, data):
                before = self.files[file].ljust(offset, b"\0")
                self.files[file] = before[:offset] + data + before[offset + len(data) :]
            case Truncate(file, size):
                self.files[file] = self.files[file][:size].ljust(size, b"\0")
            case Sync(file):
                self.safe_files[file] = self.files[file]
            case SyncFolder():
                self.safe_names = dict(self.names)
            case WriteBack():
                self.safe_names, self.safe_files = dict(self.names), dict(self.files)

    @property
    def seen(self) -> dict[str, bytes]:
        """What programs see."""
        return {name: self.files[file] for name, file in self.names.items()}

    @property
    def safe(self) -> dict[str, bytes]:
        """What was promised."""
        return {name: self.safe_files[file] for name, file in self.safe_names.items()}


@st.composite
def logs(draw: st.DrawFn) -> list[Operation]:
    """Return a log that makes sense: files are created before they are written to."""
    plain, log = Plain(), list[Operation]()
    for step in range(draw(st.integers(0, 25))):
        operation = draw(st.sampled_from(_possible(plain, draw, step)))
        plain.do(operation)
        log.append(operation)
    return log


def _possible(plain: Plain, draw: st.DrawFn, step: int) -> list[Operation]:
    found: list[Operation] = [SyncFolder(), WriteBack()] if draw(st.booleans()) else []
    for name in NAMES:
        if name not in plain.names:
            found.append(Create(name, step))
            continue
        file = plain.names[name]
        data = bytes([step + 1]) * draw(st.integers(1, MOST_BYTES // 2))
        offset, size = draw(st.integers(0, MOST_BYTES)), draw(st.integers(0, MOST_BYTES))
        found += [Write(file, offset, data)] * 3 + [Truncate(file, size), Sync(file), Delete(name)]
    return found
