"""sqlstress doctor: what can be relied on here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sqlstress.cli.outputs import say
from sqlstress.errors import NotInstalled, SqlstressError, UsageError
from sqlstress.options.dsn import Dsn
from sqlstress.report.case import COMMON


def _as_usual(name: str) -> str:
    """Return the help of an option that means what it means to the main experiment."""
    option = COMMON[name]
    return f"{option.help}  [default: {option.default}]"


def _address(dsn: str | None) -> Dsn | None:
    """Return a server's address as it was given. Raises UsageError."""
    from sqlstress.options.dsn import dsn as read_dsn

    try:
        return None if dsn is None else read_dsn(dsn)
    except ValueError as error:
        raise UsageError(f"--dsn: {error}.") from error


@click.command(epilog="Example: sqlstress doctor --dir /var/lib/app --fullfsync on")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The folder to examine.  [default: .]",
)
@click.option("--driver", metavar="NAME", help=_as_usual("driver"))
@click.option("--journal-mode", metavar="MODE", help=_as_usual("journal-mode"))
@click.option("--synchronous", metavar="LEVEL", help=_as_usual("synchronous"))
@click.option("--fullfsync", metavar="on|off", help="Warn of what applies to this setting.")
@click.option("--dsn", metavar="DSN", help="A PostgreSQL server to look at, as kv's --dsn names it.")
def doctor(directory: Path, dsn: str | None, **given: Any) -> None:
    """Examine host, file system and SQLite build, time a sync here, and warn of what applies."""
    from sqlstress.engine.folder import RunFolder
    from sqlstress.engine.session import not_native
    from sqlstress.experiment import face_of
    from sqlstress.machine import fingerprint
    from sqlstress.plan import cases_of
    from sqlstress.show.doctor_view import doctor_text
    from sqlstress.targets import target_of

    address = _address(dsn)
    asked = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    case = cases_of({**asked, "concurrency": "1"})[0]
    build = target_of(case.driver).describe(case.driver)
    with RunFolder(directory, keep=False) as folder:
        lacking = not_native(case)
        environment = fingerprint(
            folder.path, [build] if build else [], [case.settings], 1, [lacking] if lacking else []
        )
        free = shutil.disk_usage(folder.path).free
    say(
        doctor_text(
            environment, face_of(case).behaviour.loop_of(case), [*_others(case.driver, address)], free
        )
    )


def _others(driver: str, address: Dsn | None) -> Iterator[str]:
    """Yield what could be measured with each other driver here; at last what is not installed."""
    from sqlstress.analysis.wording import listing
    from sqlstress.target import for_keyvalue, installed
    from sqlstress.targets import target_of

    missing: list[NotInstalled] = []
    for name, known in for_keyvalue().items():
        if known.stores and name != driver:
            try:
                yield f"{name}: {target_of(name).at_hand(name, address)}"
            except NotInstalled as error:
                missing.append(error)
            except SqlstressError as error:
                yield f"{name}: {error}"
    if missing:
        names, packages = listing([one.driver for one in missing]), " ".join(one.package for one in missing)
        yield f"not installed: {names} (python -m pip install {packages})"
    for name, why in installed().broken.items():
        yield f"{name}: can't be used, and is left out: {why}"
