"""Print every sentence of the reports with sample facts: `python -m sqlstress.show.phrases`.

A sentence is a function in a module `sentences`. Its parameters are the facts of a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, isfunction, signature
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from sqlstress.analysis.finding import code_of
from sqlstress.registry import EXPERIMENTS
from sqlstress.statistics.compare import Ratio

Sentence = Callable[..., str]

TEXTS: Mapping[str, str] = {
    "a": "A", "b": "B", "of": "A", "letter": "B", "arm": "B", "side": "postgres", "other": "sqlite",
    "sides": "sqlite and postgres", "setting": "synchronous", "value": "normal", "base": "full",
    "where": "8 processes on 1 bucket", "elsewhere": "8 processes on 20 buckets", "layout": "20 buckets",
    "name": "last writes", "example": "key 7 has no value", "reason": "the disk is full",
    "progress": "3 of 100 rounds", "rounds": "3 of 100 rounds", "unit": "transactions", "timeout": "5s",
    "server": "db.example:5432", "noise": "5 passes cannot show a difference of 10%",
    "transaction": "transfer", "table": "account",
    "statement": "SELECT balance FROM account WHERE id = 5", "at": "bank.py:27",
}  # fmt: skip
"""Sample values of text arguments, by name of the argument. The default is the name in capitals."""
NUMBERS: Mapping[type, Any] = {int: 12, float: 2.1, bool: True, Ratio: Ratio(3.1, 2.9, 3.4, 5)}
"""Sample values of arguments that are not text, by type."""
CHOICES: Mapping[tuple[str, str], Sequence[str]] = {
    ("suspicion", "kind"): (
        "read-outside", "copy-of-read-outside", "guarded-by-stale-read", "maybe-guarded-by-stale-read",
        "decision-on-old-data", "mixed-view", "expired-lease", "unread-row-count", "time-in-seconds",
        "last-row", "reused-id", "followed-id", "offset-pages", "null-in-conflict-key",
        "skipped-trigger", "shared-staging", "text-time", "null-twin", "mixed-times", "kept-id",
        "second-save",
        "passed-over", "connection-mixed", "connection-forked",
    ),
    ("suspicion", "effect"): (
        *("", "double-insert", "double-insert-despite-key", "double-insert-in-range", "insert-on-old-data"),
        *("double-claim", "double-use"),
    ),
    ("breaking-step", "kind"): ("between", "half", "alone", "in turn"),
    ("locked", "cause"): ("soon", "long", "alone", "snapshot", "table", "recovery"),
    ("long-hold", "work"): ("", "SCAN account", "unfetched rows", "checkpoint"),
    ("long-hold", "condition"): ("", "LIKE", "function"),
    ("long-write", "activity"): ("waits", "computes"),
    ("repeated-transaction", "after"): ("", "COMMIT", "BEGIN", "ROLLBACK", "error"),
    ("open-statement", "blob"): ("read", "write"),
    ("watch-event", "kind"): ("deleted", "replaced", "journal"),
}  # fmt: skip
"""All values of arguments that select a sentence's wording, by (code of the sentence, argument)."""


def sentences() -> dict[str, Sentence]:
    """Return all sentence functions by code: those that experiments share, then those of each experiment."""
    packages = dict.fromkeys(target.rpartition(".")[0] for target in EXPERIMENTS.values())
    names = [f"{package}.sentences" for package in packages if find_spec(f"{package}.sentences")]
    return {
        code_of(function): function
        for module in map(import_module, ("sqlstress.analysis.sentences", *names))
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }


def facts_of(sentence: Sentence) -> dict[str, Any]:
    """Return a sample value for each parameter of a sentence function, by name."""
    facts = {name: _sample(name, kind) for name, kind in get_type_hints(sentence).items() if name != "return"}
    chosen = {
        name: CHOICES[code_of(sentence), name][0] for name in facts if (code_of(sentence), name) in CHOICES
    }
    return {**facts, **chosen}


def variants_of(sentence: Sentence) -> Iterator[dict[str, Any]]:
    """Yield sample arguments of a sentence function: first all of its arguments, then variants.

    In a variant, one argument is left out (if it has a default), or has another value.
    """
    facts, parameters = facts_of(sentence), signature(sentence).parameters
    yield facts
    for name, fact in facts.items():
        if parameters[name].default is not Parameter.empty:
            yield {other: value for other, value in facts.items() if other != name}
        if fact is True:
            yield {**facts, name: False}
        for choice in CHOICES.get((code_of(sentence), name), ()):
            yield {**facts, name: choice}


def _sample(name: str, kind: Any) -> Any:
    if get_origin(kind) is UnionType:
        kind = next(alternative for alternative in get_args(kind) if alternative is not NoneType)
    if get_origin(kind) is Sequence:
        return (_sample(name, get_args(kind)[0]),)
    if get_origin(kind) is Mapping:
        return {name.upper(): _sample(name, get_args(kind)[1])}
    if kind not in NUMBERS and hasattr(kind, "_fields"):
        return kind(**{field: _sample(field, inner) for field, inner in get_type_hints(kind).items()})
    if "share" in name and kind is float:
        return 0.1
    if name.endswith("_ns"):
        return 3_400_000_000
    return NUMBERS.get(kind, TEXTS.get(name, name.upper()))


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # a program such as head closed the pipe before the end
        for code, sentence in sentences().items():
            texts = dict.fromkeys(sentence(**facts) for facts in variants_of(sentence))
            print(code, *texts, sep="\n    ", flush=True)  # noqa: T201
