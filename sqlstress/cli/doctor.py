"""Command `sqlstress doctor`: examines this machine, its file system and its SQLite builds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sqlstress.cli.outputs import print_text
from sqlstress.errors import EnvironmentFailure, NotInstalled, SqlstressError, UsageError
from sqlstress.options.dsn import Dsn
from sqlstress.options.dsn import dsn as read_dsn
from sqlstress.options.parsing import sentence
from sqlstress.report import Warning
from sqlstress.report.case import COMMON
from sqlstress.show.endings import FINE

LONGEST_PID = 10
"""Maximum number of digits of a process ID; a longer number is a file name."""


def _help_with_default(name: str) -> str:
    return f"{COMMON[name].help}  [default: {COMMON[name].default}]"


@click.command(epilog="Example: sqlstress doctor --dir /var/lib/app --fullfsync on")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Folder to examine.  [default: .]",
)
@click.option("--driver", metavar="NAME", help=_help_with_default("driver"))
@click.option("--journal-mode", metavar="MODE", help=_help_with_default("journal-mode"))
@click.option("--synchronous", metavar="LEVEL", help=_help_with_default("synchronous"))
@click.option("--fullfsync", metavar="on|off", help="PRAGMA fullfsync. Shows the warnings that apply to it.")
@click.option("--dsn", metavar="DSN", help="PostgreSQL server to examine: postgresql://user@host/database.")
@click.option(
    "--program",
    metavar="PID|PATH",
    help="Name the SQLite in a running process, a program or a library, and nothing else.",
)
@click.option("--hunt", is_flag=True, help="Try for 10 s to make this SQLite lose commits.")
def doctor(directory: Path, dsn: str | None, program: str | None, hunt: bool, **given: Any) -> int:
    """Examine the host, file system and SQLite build, measure a sync, and show the warnings that apply."""
    from sqlstress.engine.folder import RunFolder
    from sqlstress.engine.session import not_native
    from sqlstress.experiment import experiment_of
    from sqlstress.machine import fingerprint
    from sqlstress.plan import cases_of
    from sqlstress.show.doctor_view import doctor_text
    from sqlstress.system.sharing import shared_memory_folder
    from sqlstress.targets import target_of

    if program is not None:
        return _show_builds(program)
    try:
        address = None if dsn is None else read_dsn(dsn)
    except ValueError as error:
        raise UsageError(f"--dsn: {sentence(error)}") from error
    options = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    case = cases_of({**options, "concurrency": "1"})[0]
    build = target_of(case.driver).describe(case.driver)
    with RunFolder(directory, keep=False) as folder:
        lacking = not_native(case)
        environment = fingerprint(
            folder.path,
            [build] if build else [],
            [case.settings],
            1,
            [lacking] if lacking else [],
            waiting=[case.driver],
        )
        free = shutil.disk_usage(folder.path).free
    other_drivers = [*_other_drivers(case.driver, address)]
    sharing = ""
    try:
        sharing = shared_memory_folder()
    except EnvironmentFailure as failure:
        warning = Warning("no-shared-memory", str(failure), True)
        environment = replace(environment, warnings=(warning, *environment.warnings))
    print_text(doctor_text(environment, experiment_of(case).loop_of(case), other_drivers, free, sharing))
    return _hunt(case.driver, directory) if hunt else FINE


def _show_builds(program: str) -> int:
    from sqlstress.machine.sqlite_builds import builds_of_process, builds_of_program
    from sqlstress.sqlite_codes import has_wal_reset_bug

    is_file = os.path.exists(program)  # noqa: PTH110 - Path.exists raises OSError for a long name.
    is_process = program.isdecimal() and len(program) <= LONGEST_PID and not is_file
    if is_process:
        builds = builds_of_process(int(program))
    else:
        builds = builds_of_program(Path(program if is_file else shutil.which(program) or program))
    for build in builds:
        bug = " WARNING: it can lose commits (WAL-reset bug)." if has_wal_reset_bug(build.version) else ""
        title = f"SQLite {build.version or 'of unknown version'} (source of {build.source_date})"
        print_text(f"{title}: {build.file}.{bug}")
    if len(builds) > 1:
        print_text(
            "WARNING: several SQLite libraries in one process. On one file they drop each other's locks."
        )
    if not builds and is_process:
        print_text(f"No SQLite in process {program}.")
    elif not builds:
        print_text(f"No SQLite in {program}. If it loads a library: start it, and give its process id.")
    return FINE


def _hunt(driver: str, directory: Path) -> int:
    """Try for 10 s to lose commits in a driver's SQLite, print the result, return the exit code."""
    from sqlstress.analysis.study_parts import parts
    from sqlstress.api import hunt
    from sqlstress.show.doctor_view import hunt_text

    report = hunt(driver=driver, directory=directory, max_time="10s", shrink_time="0s")
    (part,) = parts(report.document)
    print_text(hunt_text(part.verdict.finding.text))
    return report.exit_code


def _other_drivers(driver: str, address: Dsn | None) -> Iterator[str]:
    """Yield a line on each driver except `driver`: its library's version, or an error.

    `address` is the server to examine for drivers of PostgreSQL, or None.
    """
    from sqlstress.analysis.wording import listing
    from sqlstress.target import installed, keyvalue_drivers
    from sqlstress.targets import target_of

    missing: list[NotInstalled] = []
    for name, properties in keyvalue_drivers().items():
        if properties.stores and name != driver:
            try:
                yield f"{name}: {target_of(name).describe_available(name, address)}"
            except NotInstalled as error:
                missing.append(error)
            except SqlstressError as error:
                yield f"{name}: {error}"
    if missing:
        names = listing([failure.driver for failure in missing])
        packages = " ".join(failure.package for failure in missing)
        yield f"not installed: {names} (python -m pip install {packages})"
    for name, reason in installed().broken.items():
        yield f"{name}: not usable: {reason}"
