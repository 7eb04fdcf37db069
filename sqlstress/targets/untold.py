"""What places have in common that do not tell where a process's time goes."""

from __future__ import annotations


class Untold:
    """A place inherits from it: nothing is watched, and nothing told."""

    def watch(self, trace: object, process: int) -> None:
        return None

    def trace(self, processes: int) -> None:
        return None

    def account(self, trace: object, workers: object) -> None:
        return None
