"""Print every sentence with sample facts: `python -m sqlstress.show.phrases`.

The sentences that several experiments share are in `analysis.sentences`. An experiment has its sentences in
a module `sentences` of its package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, isfunction, signature
from typing import Any

from sqlstress.analysis.finding import Finding, code_of
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
    "transaction": "transfer", "table": "account", "first_at": "bank.py:27", "then_at": "bank.py:28",
    "first": "SELECT balance FROM account WHERE id = 5",
    "then": "UPDATE account SET balance = 990 WHERE id = 5",
}  # fmt: skip
"""Samples of texts, by the name of the fact. The sample of another text is its name."""
NUMBERS: Mapping[str, Any] = {"int": 12, "float": 2.1, "bool": True, "Ratio": Ratio(3.1, 2.9, 3.4, 5)}
"""Samples of other facts, by type."""


def sentences() -> dict[str, Sentence]:
    """Return all sentences by code: the shared ones, then those of each experiment."""
    packages = dict.fromkeys(target.rpartition(".")[0] for target in EXPERIMENTS.values())
    names = [f"{package}.sentences" for package in packages if find_spec(f"{package}.sentences")]
    return {
        code_of(function): function
        for module in map(import_module, ("sqlstress.analysis.sentences", *names))
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }


def facts_of(sentence: Sentence) -> dict[str, Any]:
    """Return a sample of each fact of a sentence."""
    return {name: _sample(name, fact) for name, fact in signature(sentence).parameters.items()}


def _sample(name: str, fact: Parameter) -> Any:
    kind = str(fact.annotation).removesuffix(" | None")
    if kind.startswith("Sequence["):
        return (_of_type(name, kind.removeprefix("Sequence[").removesuffix("]")),)
    if kind.startswith("Mapping["):
        return {name.upper(): 12}
    return _of_type(name, kind)


def _of_type(name: str, kind: str) -> Any:
    if "share" in name and kind == "float":
        return 0.1
    if name.endswith("_ns"):
        return 3_400_000_000
    text = TEXTS.get(name, name.upper())
    return Finding(_named, name=text) if kind == "Finding" else NUMBERS.get(kind, text)


def _named(*, name: str) -> str:
    return name


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the reader, such as head, has seen enough
        for code, sentence in sentences().items():
            print(f"{code}\n    {sentence(**facts_of(sentence))}", flush=True)  # noqa: T201
