"""The user's Python: imported in a process of its own, where it finds the database of the trial."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sqlstress.errors import UsageError, plainly

if TYPE_CHECKING:
    from sqlstress.targets.directions import Directions

DATABASE = "SQLSTRESS_DATABASE"
"""The environment variable that has the path of the trial's database, or its URL on a server."""


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
        raise Unloadable(f"{file}{_line(error, str(path))} can't be imported: {plainly(error)}.") from error
    return module


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
    found = environment(directions, DATABASE, os.environ)
    os.environ.clear()
    os.environ.update(found)
    random.seed(seed)
    silence()


def environment(directions: Directions, name: str, before: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which programs find the database; `name` is the variable of ours for it."""
    told = {**before, **directions.variables, name: directions.address}
    return {variable: value for variable, value in told.items() if value is not None}


def silence() -> None:
    """Let what this process prints go nowhere: it may be a gigabyte, and the report is on the terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def only_begins(function: object) -> bool:
    """Return whether a call of it does nothing yet: it is async, or a generator."""
    return iscoroutinefunction(function) or isgeneratorfunction(function) or isasyncgenfunction(function)
