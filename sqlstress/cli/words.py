"""Options that stand within a word, or behind --: read as those of a command are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from sqlstress.cli.options import click_options, typed
from sqlstress.errors import UsageError
from sqlstress.options.option import REST, Option


def given_in(words: Sequence[str], options: Iterable[Option], where: str) -> dict[str, Any]:
    """Return the options that words give, by name, as they were typed.

    Raises UsageError that says where they stand.
    """
    known = list(options)
    command = click.Command(where, params=click_options(known), add_help_option=False)
    command.allow_interspersed_args = not any(one.argument == REST for one in known)
    try:
        context = command.make_context(where, list(words))
    except click.UsageError as error:
        said = error.format_message().rstrip(".?")
        raise UsageError(f"{where}: {said}. It takes options of the load.") from error
    return typed(context.params)
