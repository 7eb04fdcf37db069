"""What is asked of the hosts of a cluster: a plan, for how long, and where its reports go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiment import has_window
from sqlstress.options.parsing import duration
from sqlstress.plan import from_toml
from sqlstress.plan.toml import LARGEST
from sqlstress.system.files import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlstress.report.case import Case


@dataclass(frozen=True, slots=True)
class Asked:
    """A plan for every host, checked here: what is wrong with it is wrong on all of them."""

    plan: str
    """Its text, with a seed that all hosts share."""
    folder: Path
    """Where the reports are saved: an empty folder, or one that is not there yet."""
    directory: str
    """Where the databases go on each host."""
    limit_s: float
    """How long a host may take."""
    hosts: int | None
    """Until so many have come it is waited for more; None: those that are there, and who joins meanwhile."""
    together: bool = False
    """Whether all load one server, from a common start."""

    @classmethod
    def of(
        cls, plan: Path, folder: Path, directory: str, limit: str, hosts: int | None, together: bool = False
    ) -> Asked:
        """Read what options ask for. Raises UsageError."""
        cases = from_toml(plan)
        if together:
            check_one_server(cases)
        try:
            limit_s = duration(1.0)(limit)
        except ValueError as error:
            raise UsageError(f"--limit: {error}.") from error
        # The plan's own seed stands in all its cases; one that was drawn is the same for all hosts now.
        text = read_text(plan, LARGEST)
        own = f"seed = {cases[0].seed}\n" if not _has_seed(text) else ""
        return cls(f"{own}{text}", _empty(folder), directory, limit_s, hosts, together)

    def make_folder(self) -> bool:
        """Make the folder before anything is measured; say whether it is new. Raises EnvironmentFailure."""
        try:
            if self.folder.is_dir():
                return False
            self.folder.mkdir(parents=True)
            return True
        except OSError as error:
            raise EnvironmentFailure(
                f"cannot make the folder {str(self.folder)!r:.200}: {error.strerror}."
            ) from error


def check_one_server(cases: Sequence[Case]) -> None:
    """Raise UsageError unless all cases load one server that is named, each in a window."""
    addresses = {case.server.address if case.server else None for case in cases}
    if None in addresses:
        raise UsageError(
            '--together loads one server: every case needs target = "postgres" and a dsn that hosts share.'
        )
    if len(addresses) > 1:
        shown = " and ".join(sorted(str(one) for one in addresses)[:2])
        raise UsageError(f"--together loads one server, and the plan names {shown}: make a plan of each.")
    if not all(map(has_window, cases)):
        raise UsageError("--together needs windows that hosts have in common: give duration, and no ops.")
    if not all(case.warmup_s for case in cases):
        raise UsageError("--together needs a warmup, so that every host loads when the windows open.")


def _has_seed(text: str) -> bool:
    import tomllib

    return "seed" in tomllib.loads(text)


def _empty(folder: Path) -> Path:
    """Return a folder that holds nothing, or is not there yet: reports of another run stay apart."""
    try:
        if folder.exists() and next(folder.iterdir(), None) is not None:
            raise UsageError(
                f"--folder {str(folder)!r:.200} is not empty: name a new one for this run's reports."
            )
    except OSError as error:
        raise UsageError(f"--folder {str(folder)!r:.200}: {error.strerror}.") from error
    return folder
