"""What a shell may complete: commands, options and their values. Click prints the script for the shell."""

from __future__ import annotations

import re

from click.shell_completion import CompletionItem

from sqlstress.options.option import Option
from sqlstress.options.parsing import constraint

_FILE = re.compile(r"FILE|SCRIPT|PYTHON|COMMAND|PLAN|\.json")
"""Metavars of what is a file; of "FOLDER" it is a folder."""


def values(option: Option, incomplete: str) -> list[CompletionItem]:
    """Return the values that an option may have; of a list those that its last part may become."""
    names = constraint(option.parse).get("enum") or ["on", "off"] * (option.metavar == "on|off")
    if not names:
        return paths(option.metavar, incomplete)
    before, comma, last = incomplete.rpartition(",") if option.metavar == "LIST" else ("", "", incomplete)
    taken = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{name}")
        for name in map(str, names)
        if name.startswith(last.lower()) and name not in taken
    ]


def paths(metavar: str, incomplete: str) -> list[CompletionItem]:
    """Return what tells a shell to complete the name of a file or of a folder, where it is one."""
    kind = "dir" if metavar == "FOLDER" else "file" if _FILE.search(metavar) else None
    return [CompletionItem(incomplete, type=kind)] if kind else []
