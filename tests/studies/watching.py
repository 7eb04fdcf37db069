"""An observer that writes down how far a study has come."""

from __future__ import annotations

from sqlstress.engine.study import Nobody, Progress


class Watching(Nobody):
    """Keeps everything that it is told of a study's progress, which must never go backwards."""

    def __init__(self) -> None:
        self.told: list[Progress] = []

    def progress(self, progress: Progress) -> None:
        assert 0 <= progress.done <= progress.total
        assert progress.left_s >= 0
        if self.told:
            assert progress.done >= self.told[-1].done
            assert progress.total >= self.told[-1].total
        self.told.append(progress)
