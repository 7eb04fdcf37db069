"""SQLite's builds, and in what those of several reports, or of the arms of a test, differ: in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlstress.report import SqliteBuild

Builds = Sequence[SqliteBuild | None]
"""One of each report or arm; None where it is not known."""

TELLING = (
    *("DEFAULT_SYNCHRONOUS", "DEFAULT_WAL_SYNCHRONOUS", "DEFAULT_CKPTFULLFSYNC"),
    *("DEFAULT_WAL_AUTOCHECKPOINT", "DEFAULT_JOURNAL_SIZE_LIMIT", "DEFAULT_PAGE_SIZE", "DEFAULT_CACHE_SIZE"),
    *("ENABLE_PREUPDATE_HOOK", "ENABLE_SETLK_TIMEOUT", "THREADSAFE"),
)
"""The compile options that change what a commit costs or what it is worth."""


def telling(options: Iterable[str]) -> str:
    """Return those compile options that tell something, as a list."""
    return ", ".join(option for option in options if option.partition("=")[0] in TELLING)


def build_of(driver: str, builds: Iterable[SqliteBuild]) -> SqliteBuild | None:
    """Return the build behind a driver; None where its version is not known."""
    return next((build for build in builds if build.driver == driver and build.version), None)


def versions(builds: Builds) -> list[str | None]:
    """Return the versions; with their check-ins where one version stands for several."""
    short = _each(builds, version)
    long = _each(builds, lambda build: f"{version(build)} ({build.source_id})")
    return long if len(set(long)) > len(set(short)) else short


def version(build: SqliteBuild) -> str:
    """Return a version; of another library than SQLite with its name."""
    return build.version if build.library == "SQLite" else f"{build.library} {build.version}"


def own_options(builds: Builds) -> list[str | None]:
    """Return the telling compile options that only some have."""
    known = [set(build.compile_options) for build in builds if build]
    common = set.intersection(*known) if known else set()

    def own(build: SqliteBuild) -> str:
        return telling(option for option in build.compile_options if option not in common) or "none of these"

    return _each(builds, own)


def _each(builds: Builds, text: Callable[[SqliteBuild], str]) -> list[str | None]:
    return [text(build) if build else None for build in builds]
