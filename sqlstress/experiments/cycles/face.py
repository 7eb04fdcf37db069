"""The experiment with cycles: its cases are settings with numbers of processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.experiments.cycles.spec import WORDS, Cycling, Extra
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import whole
from sqlstress.plan.ask import Ask, check_locking, is_exclusive
from sqlstress.report.case import Case, common, otherwise

COMMIT_S, STATEMENT_S = 250e-6, 10e-6

Asked = Ask[Cycling, Extra]


def cases(asked: Asked) -> Iterator[Case]:
    """Yield the cases, settings outside, concurrencies inside. Raises UsageError."""
    _check_together(asked)
    for name in dict.fromkeys(_named(asked, name) for name in asked.extra.settings):
        for concurrency in asked.some("concurrency"):
            yield _case(asked, name, concurrency)


def _check_together(asked: Asked) -> None:
    names = asked.extra.settings
    if "transaction" in asked.given and not any("-tx" in name for name in names):
        raise UsageError("--transaction is for settings in one transaction: add one with tx to --settings.")
    if "wal-autocheckpoint" in asked.given and not {"wal", "wal-tx", "wal-cycle"} & set(names):
        raise UsageError("--wal-autocheckpoint is for the settings wal and wal-tx: add one of them.")
    check_locking(asked)
    if is_exclusive(asked.settings) and any(name.startswith("wal") for name in names):
        raise UsageError(
            "PRAGMA locking_mode=exclusive hides the WAL's index, in which checkpoints are seen: "
            "use it with --settings delete,delete-tx only."
        )


def _named(asked: Asked, name: str) -> str:
    """Return a setting by the name that it is shown by: with --transaction, tx stands for either."""
    return name.replace("-tx", f"-{WORDS[asked.extra.transaction]}")


def _case(asked: Asked, name: str, concurrency: int) -> Case:
    journal, *rest = name.split("-")
    frames = asked.settings.wal_autocheckpoint if journal == "wal" else None
    settings = asked.with_settings(journal_mode=journal, wal_autocheckpoint=0 if "off" in rest else frames)
    held = next((what for what, word in WORDS.items() if word in rest), "none")
    cycling = replace(asked.spec, transaction=held)
    return replace(asked.case, concurrency=concurrency, settings=settings, spec=cycling)


def setting_of(case: Case) -> str:
    """Return which setting a case tries, as --settings has it; frames of a checkpoint come behind it."""
    held, frames = case.spec.transaction, case.settings.wal_autocheckpoint
    parts = [case.settings.journal_mode]
    parts += [WORDS.get(held, held)] * (held != "none")
    parts += [str(frames) if frames else "off"] * (frames is not None)
    return "-".join(parts)


def _one_table(case: Case) -> Case:
    settings = replace(case.settings, journal_mode="", wal_autocheckpoint=None)
    cycling = replace(case.spec, transaction="", timeout_s=None)
    return replace(case, concurrency=1, seed=0, spec=cycling, settings=settings)


def _guess_s(case: Case) -> float:
    work: Cycling = case.spec
    commits = {"none": work.cycles * (2 * work.rows + 1), "cycle": work.cycles}.get(work.transaction, 1)
    # A commit of a rollback journal waits for several syncs.
    commit_s = COMMIT_S if case.settings.journal_mode == "wal" else 5 * COMMIT_S
    load = case.concurrency * (commits * commit_s + work.cycles * (2 * work.rows + 1) * STATEMENT_S)
    return load if work.timeout_s is None else min(load, work.timeout_s)


CYCLES = Experiment(
    name="cycles",
    spec=Cycling,
    key="cycling",
    command="cycles",
    summary="Insert, delete all, insert again: each cycle's time, by setting.",
    help=(
        "Measure cycles of inserting rows, deleting all of them and inserting again, under five settings.\n\n"
        "The settings: rollback journal (delete) or WAL, row by row or in one transaction (tx), and WAL "
        "without automatic checkpoints (off). Each cycle is timed, and watched for checkpoints."
    ),
    example="sqlstress cycles --settings wal,wal-tx --synchronous normal",
    options=(
        *chosen(options_of(Extra), "settings"),
        otherwise("concurrency", default="1"),
        otherwise("repeat", default=5),
        *chosen(options_of(Cycling), "cycles", "rows"),
        *chosen(options_of(Extra), "transaction"),
        *chosen(options_of(Cycling), "timeout"),
        *common("synchronous", "fullfsync"),
        otherwise(
            "wal-autocheckpoint",
            parse=whole(1, 10**9),
            help="PRAGMA wal_autocheckpoint of the settings wal and wal-tx.",
        ),
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout", "busy"),
        *common("driver", "verify", "max-failed", "seed"),
    ),
    extra=Extra,
    cases=cases,
    one_table=_one_table,
    same_work=lambda case: replace(case, spec=replace(case.spec, timeout_s=None)),
    work_of=setting_of,
    in_label=frozenset(("transaction",)),
    unit="statement",
    counted="cycles",
    guess_s=_guess_s,
    work="sqlstress.experiments.cycles.work:CyclesWork",
    worker="sqlstress.experiments.cycles.worker:CyclesSource",
    companions={"cycle watcher": "sqlstress.experiments.cycles.watcher:CycleWatcher"},
    shown="sqlstress.experiments.cycles.shown:CyclesShown",
)
