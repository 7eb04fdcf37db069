"""Command `sqlstress why`: causes and remedies of an SQLite error, given a line of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sqlstress.analysis.causes import Diagnosis, Facts, code_in, diagnose
from sqlstress.cli.outputs import print_text
from sqlstress.errors import UsageError
from sqlstress.options.parsing import abbreviate, duration, sentence, suggestion
from sqlstress.show.endings import FINE
from sqlstress.sqlite_codes import BUSY_SNAPSHOT, NAMES, name

MIN_WAIT_S = 0.1
"""Waits below this number of seconds count as "at once"."""
MAX_CAUSES = 4
MEASURING_COMMANDS = "sqlstress app FILE or sql FILE measures your statements"


@click.command("why", epilog='Example: sqlstress why "database is locked" --after 0s')
@click.argument("code", nargs=-1, required=True)
@click.option("--after", metavar="TIME", help="Time that the statement waited before it failed.")
def explain_code(code: Sequence[str], after: str | None) -> int:
    """Name the causes of a result code of SQLite and their cures.

    CODE is a number, a name, a message or a line of a log: 517, SQLITE_BUSY, "database is locked".
    """
    text = " ".join(code)
    number = code_in(text)
    if number is None:
        near = suggestion(text, [code_name.lower() for code_name in NAMES.values()])
        remedy = near or " Give the error as it was logged."
        raise UsageError(f"no result code, name or message of SQLite in {abbreviate(text)}.{remedy}")
    waited_s = None if after is None else _seconds(after)
    print_text("\n".join(_explanation_lines(number, waited_s)))
    return FINE


def _explanation_lines(code: int, waited_s: float | None) -> list[str]:
    facts = facts_of_wait(waited_s)
    diagnosis = diagnose(code, facts)
    title = f"{name(code)} ({code})" if code > 0 else name(code)
    when = "" if waited_s is None else f" after {waited_s:g} s"
    if not diagnosis.possible:
        return [f"{title}{when}: no known cause.", f"{MEASURING_COMMANDS} and counts the failures."]
    if diagnosis.cause:
        return [f"{title}{when}: {diagnosis.cause.cause}", diagnosis.cause.advice]
    timeless = code == BUSY_SNAPSHOT or not any(rule.when.waited for rule in diagnosis.possible)
    if facts.waited or timeless:
        causes = [f"- {line}" for line in _candidates(diagnosis, MAX_CAUSES)]
        return [
            f"{title}{when} has several causes, the likeliest first:",
            *causes,
            f"{MEASURING_COMMANDS} and names the cause.",
        ]
    at_once, late = (diagnose(code, facts_of_wait(seconds)) for seconds in (0.0, MIN_WAIT_S))
    return [
        f"{title} has several causes. The time that the statement waited distinguishes them (--after TIME):",
        *(f"- At once: {line}" for line in _candidates(at_once, MAX_CAUSES // 2)),
        *(f"- After the timeout: {line}" for line in _candidates(late, MAX_CAUSES // 2)),
    ]


def _candidates(diagnosis: Diagnosis, limit: int) -> list[str]:
    """Return up to `limit` causes with remedies, the likeliest first.

    A rule names a cause and the facts that the cause needs. The rule with the fewest facts is the most
    general, so its cause is the likeliest. This rule is the last in `diagnosis`.
    """
    return [f"{rule.cause} {rule.advice}" for rule in diagnosis.possible[::-1][:limit]]


def facts_of_wait(waited_s: float | None) -> Facts:
    """Return the facts `waited` and `timeout` of a statement that failed after `waited_s` seconds.

    For example, 0.02 s is "at once". Any wait of MIN_WAIT_S or more is taken to be the whole busy timeout:
    `waited` is "the timeout", and `timeout` is "set" (100 ms or longer). For None, both facts are unknown.
    """
    if waited_s is None:
        return Facts()
    if waited_s < MIN_WAIT_S:
        return Facts(waited="at once")
    return Facts(waited="the timeout", timeout="set")


def _seconds(text: str) -> float:
    parse: Any = duration(0.0)
    try:
        return float(parse(text))
    except ValueError as error:
        raise UsageError(f"--after: {sentence(error)}") from error
