"""Import of the user's Python files, and the decorators for their functions, such as `transaction`."""

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
    from sqlstress.targets.views import ConnectionInfo


DATABASE = "SQLSTRESS_DATABASE"
"""Environment variable with the path of the trial's database, or the URL of a server's database."""


class ImportFailed(UsageError):
    """The user's file cannot be imported."""


def load(file: str) -> ModuleType:
    """Import a Python file once, and return its module. Raises ImportFailed.

    The file's own imports are searched for in its folder first, as with `python file`.
    """
    path = Path(file).absolute()
    name = path.stem if path.stem not in sys.modules else f"{path.stem} in {path.parent}"
    for module_name in (path.stem, name):
        if getattr(sys.modules.get(module_name), "__file__", None) == str(path):
            return sys.modules[module_name]
    sys.path.insert(0, str(path.parent))
    try:
        spec = spec_from_file_location(name, path)
        assert spec and spec.loader
        module = module_from_spec(spec)
        # Registered before the module runs, because dataclasses, pickle and ORM models look up their module.
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise ImportFailed(f"{file} exits when it is imported (exit code {error.code}).") from error
    except Exception as error:
        raise ImportFailed(
            f"{file}{_line(error, str(path))} cannot be imported: {plainly(error)}."
        ) from error
    return module


def imported_modules(before: Collection[str]) -> dict[str, str]:
    """Return the files of all modules that are not in `before`, by module name.

    `before` has the names of modules that were imported earlier. The standard library and sqlstress are left
    out. A submodule is left out if its package is new, too.
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
        if not any(package in files for package in _parent_packages(name))
        if not file.startswith(standard) or {"site-packages", "dist-packages"} & set(Path(file).parts)
    }


def _parent_packages(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


def _line(error: BaseException, file: str) -> str:
    """Return the last line of `file` in an error's traceback, as ":12"; "" if there is none."""
    lines, trace = [], error.__traceback__
    while trace:
        lines += [trace.tb_lineno] * (trace.tb_frame.f_code.co_filename == file)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno:
        lines = [error.lineno]
    return f":{lines[-1]}" if lines else ""


def prepare_process(directions: ConnectionInfo, seed: str) -> None:
    """Set the environment variables and random seed for the user's code, and discard its output."""
    variables = environment(directions, os.environ)
    os.environ.clear()
    os.environ.update(variables)
    random.seed(seed)
    silence()


def environment(directions: ConnectionInfo, before: Mapping[str, str]) -> dict[str, str]:
    """Return the environment `before` with the variables by which programs find the database.

    These are SQLSTRESS_DATABASE and those in `directions.variables`.
    """
    variables = {**before, **directions.variables, DATABASE: directions.address}
    return {variable: value for variable, value in variables.items() if value is not None}


def limit_time(pulse: Pulse, seconds: float, overdue: UsageError) -> Pulse:
    """Return a pulse that calls `pulse`, and raises `overdue` once `seconds` have passed.

    A pulse is a function that is called often during a wait, and ends the wait by an exception.
    """
    deadline = time.monotonic() + seconds

    def check_time() -> None:
        pulse()
        if time.monotonic() > deadline:
            raise overdue

    return check_time


def silence() -> None:
    """Discard the output of this process, which may be large."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def is_lazy(function: object) -> bool:
    """Return whether a function is async or a generator, so that a call does not run the body."""
    return iscoroutinefunction(function) or isgeneratorfunction(function) or isasyncgenfunction(function)


# Decorators in the user's file, which mark the roles of its functions.
#
#     from sqlstress import check, connect, setup, transaction
#
# A decorator only sets an attribute, so that the function works as before.


F = TypeVar("F", bound=Callable[..., Any])

MARK = "__sqlstress__"
"""Name of the attribute with the role that a decorator gave to a function."""
SETUP, CONNECT, TRANSACTION, CHECK, FINISH = "setup", "connect", "transaction", "check", "finish"


class FunctionRole(NamedTuple):
    """Role of a function in the user's file."""

    name: str
    """SETUP, CONNECT, TRANSACTION, CHECK or FINISH."""
    weight: int = 1
    """Relative frequency of a transaction's calls."""


def setup(function: F) -> F:
    """Mark the function that creates the database of a trial. Its argument is the path of the database.

    It runs in a separate process.
    """
    return _mark(function, FunctionRole(SETUP))


def connect(function: F) -> F:
    """Mark the function that each process calls once, with the path of the database.

    Its result is the argument of each call of a transaction.
    """
    return _mark(function, FunctionRole(CONNECT))


@overload
def transaction(function: F) -> F: ...
@overload
def transaction(*, weight: int = 1) -> Callable[[F], F]: ...
def transaction(function: F | None = None, *, weight: int = 1) -> F | Callable[[F], F]:
    """Mark a transaction, which is called many times. A call that raises has failed.

    `weight` is its frequency relative to the other transactions. The argument is the result of the function
    marked with `connect`, else the path of the database. A function without parameters gets no argument.
    """
    role = FunctionRole(TRANSACTION, weight)
    return _mark(function, role) if function else lambda decorated: _mark(decorated, role)


def check(function: F) -> F:
    """Mark a function that checks the data. It raises, or returns False, if the data is wrong.

    It runs before, during and after the load. Its argument is a function that takes SQL and parameters and
    returns rows, all from one snapshot. With a parameter `notes`, the check also gets the notes, one list per
    process; with `database`, the path of the database. A check with `notes` or `database` runs only after all
    processes have ended, so that it may open the database with your own library.
    """
    return _mark(function, FunctionRole(CHECK))


def finish(function: F) -> F:
    """Mark the function that each process calls at its end. Its argument is the result of `connect`."""
    return _mark(function, FunctionRole(FINISH))


def _mark(function: F, role: FunctionRole) -> F:
    previous = getattr(function, MARK, role)
    if previous.name != role.name:
        raise UsageError(
            f"{function.__name__} cannot be @{previous.name} and @{role.name}: write two functions"
        )
    setattr(function, MARK, role)
    return function
