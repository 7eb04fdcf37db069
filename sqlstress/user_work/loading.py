"""The user's Python: imported in a process of its own, where it finds the database of the trial."""

from __future__ import annotations

import os
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from sqlstress.errors import UsageError, plainly

if TYPE_CHECKING:
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import Directions


DATABASE = "SQLSTRESS_DATABASE"
"""The environment variable that has the path of the trial's database, or its URL on a server."""
OLD_DATABASE = "SQLSTRESS_DB"
"""Its old name for commands, which is still set: scripts read it."""


class Unloadable(UsageError):
    """A file of the user's that can't be imported."""


def load(file: str) -> ModuleType:
    """Import a file as `python file` would: its folder is searched first. Raises Unloadable."""
    path = Path(file).absolute()
    name = path.stem if path.stem not in sys.modules else f"{path.stem} in {path.parent}"
    for known in (path.stem, name):
        if getattr(sys.modules.get(known), "__file__", None) == str(path):
            return sys.modules[known]
    sys.path.insert(0, str(path.parent))
    try:
        spec = spec_from_file_location(name, path)
        assert spec and spec.loader
        module = module_from_spec(spec)
        # Before it runs: dataclasses, pickles and the models of mappers look their module up.
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise Unloadable(f"{file} exits when it is imported (exit code {error.code}).") from error
    except Exception as error:
        raise Unloadable(f"{file}{_line(error, str(path))} cannot be imported: {plainly(error)}.") from error
    return module


def imported_modules(before: Collection[str]) -> dict[str, str]:
    """Return the file of each module that is not among `before`, by name.

    The standard library, sqlstress, and modules within a package that is listed are left out.
    """
    paths = sysconfig.get_paths()
    standard = tuple(os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib"))
    files = {
        name: os.path.realpath(file)
        for name, module in list(sys.modules.items())
        if name not in before and name.partition(".")[0] != "sqlstress"
        if (file := getattr(module, "__file__", None))
    }
    return {
        name: file
        for name, file in files.items()
        if not any(package in files for package in _packages(name))
        if not file.startswith(standard) or {"site-packages", "dist-packages"} & set(Path(file).parts)
    }


def _packages(name: str) -> Iterator[str]:
    """Yield the names of the packages that a module lies in."""
    while name := name.rpartition(".")[0]:
        yield name


def _line(error: BaseException, file: str) -> str:
    """Return in which line of a file an error arose, as ":12"; nothing where it arose in none of its."""
    lines, trace = [], error.__traceback__
    while trace:
        lines += [trace.tb_lineno] * (trace.tb_frame.f_code.co_filename == file)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno:
        lines = [error.lineno]
    return f":{lines[-1]}" if lines else ""


def prepare_process(directions: Directions, seed: str) -> None:
    """Make this process one that the user's code can run in: seeded, told the database, and silent."""
    variables = environment(directions, os.environ)
    os.environ.clear()
    os.environ.update(variables)
    random.seed(seed)
    silence()


def environment(directions: Directions, before: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which programs find the database."""
    address = dict.fromkeys((DATABASE, OLD_DATABASE), directions.address)
    variables = {**before, **directions.variables, **address}
    return {variable: value for variable, value in variables.items() if value is not None}


def limited(pulse: Pulse, seconds: float, overdue: UsageError) -> Pulse:
    """Return a pulse that raises after a while: the process in which the user's code runs is ended then."""
    until = time.monotonic() + seconds

    def looked() -> None:
        pulse()
        if time.monotonic() > until:
            raise overdue

    return looked


def silence() -> None:
    """Let what this process prints go nowhere: it may be a gigabyte, and the report is on the terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def only_begins(function: object) -> bool:
    """Return whether a call of it does nothing yet: it is async, or a generator."""
    return iscoroutinefunction(function) or isgeneratorfunction(function) or isasyncgenfunction(function)


# What the user's file imports: decorators that say which of its functions are what.
#
#     from sqlstress import check, connect, setup, transaction
#
# A function keeps working as it is: nothing but a mark is put on it.


F = TypeVar("F", bound=Callable[..., Any])

MARK = "__sqlstress__"
"""The attribute in which a function has its role."""
SETUP, CONNECT, TRANSACTION, CHECK, FINISH = "setup", "connect", "transaction", "check", "finish"


class Role(NamedTuple):
    """What a function is for."""

    name: str
    weight: int = 1
    """How often a transaction is drawn, relative to the others."""


def setup(function: F) -> F:
    """Mark the function that makes the database of a trial: it is given the path, in a process of its own."""
    return _marked(function, Role(SETUP))


def connect(function: F) -> F:
    """Mark the function that each process calls once, with the path; transactions get what it returns."""
    return _marked(function, Role(CONNECT))


@overload
def transaction(function: F) -> F: ...
@overload
def transaction(*, weight: int = 1) -> Callable[[F], F]: ...
def transaction(function: F | None = None, *, weight: int = 1) -> F | Callable[[F], F]:
    """Mark a transaction: it is called again and again, and has failed when it raises.

    `weight` says how often, relative to the others. It is given what the function marked with `connect`
    returned, or the path where there is none; one without parameters is given nothing.
    """
    role = Role(TRANSACTION, weight)
    return _marked(function, role) if function else lambda given: _marked(given, role)


def check(function: F) -> F:
    """Mark what must hold before, during and after the load: it fails by raising.

    It is given a function of SQL and parameters that returns rows, all as of one moment. A parameter `notes`
    is given what was noted, a list for each process; `database` is the path. A check with one of these runs
    when all processes have ended, and may use your own library.
    """
    return _marked(function, Role(CHECK))


def finish(function: F) -> F:
    """Mark the function that each process calls at its end, with what `connect` returned."""
    return _marked(function, Role(FINISH))


def _marked(function: F, role: Role) -> F:
    before = getattr(function, MARK, role)
    if before.name != role.name:
        raise UsageError(
            f"{function.__name__} cannot be @{before.name} and @{role.name}: write two functions"
        )
    setattr(function, MARK, role)
    return function
