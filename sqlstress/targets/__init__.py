"""What is stressed, a package each: a target has drivers, and a place for the data of a case."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, cast

from sqlstress.target import Known, drivers, known_as

if TYPE_CHECKING:  # a worker process need not know more of a place than it asks
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.targets.directions import Directions, Directs
    from sqlstress.targets.meeting import Meeting
    from sqlstress.targets.place import Place, Target


def target_of(driver: str) -> Target:
    """Import the target of a driver."""
    return _imported(known_as(driver))


def _imported(known: Known) -> Target:
    if not known.package:
        return cast("Target", import_module(f"{__name__}.{known.target}"))
    try:
        return cast("Target", import_module(known.package))
    except Exception as error:  # it is somebody else's code
        from sqlstress.errors import EnvironmentFailure

        raise EnvironmentFailure(f"{known.package} can't be imported: {error}") from error


def open_place(case: Case, where: Path) -> Place:
    """Return where the data of a case lies; nothing is touched there yet.

    `where` is a folder of ours. A target that keeps no files in it may call its data by the folder's name.
    """
    return target_of(case.driver).open_place(case, where)


def stand_in(driver: str, folder: Path) -> Directions:
    """Return directions to nothing of a driver's target, for a program of the user's that is only looked at.

    `folder` is an empty one of ours.
    """
    return cast("Directs", target_of(driver)).stand_in(folder)


@contextmanager
def serving(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Have what cases need beside their workers, such as a server of ours, while the block lasts."""
    own: dict[str, list[Case]] = {}
    for case in cases:
        own.setdefault(known_as(case.driver).target, []).append(case)
    with ExitStack() as had:
        for of_target in own.values():
            had.enter_context(target_of(of_target[0].driver).serving(of_target, folder))
        yield


@contextmanager
def joining(cases: Sequence[Case]) -> Iterator[Meeting | None]:
    """Have this host's part in a load of many hosts while the block lasts; None where it loads alone.

    Who invites hosts has seen that the cases name one server.
    """
    from sqlstress.targets.meeting import Meets, invitation

    invited = invitation()
    if invited is None:
        yield None
        return
    with cast(Meets, target_of(cases[0].driver)).joining(cases, invited) as met:
        yield met


def file_patterns() -> list[str]:
    """Return, as regular expressions, the names of the files that targets leave in a folder."""
    from sqlstress.errors import EnvironmentFailure

    found = []
    for known in {known.target: known for known in drivers().values()}.values():
        with suppress(EnvironmentFailure):  # what can't be imported has left nothing
            found.append(_imported(known).FILES)
    return [pattern for pattern in found if pattern]
