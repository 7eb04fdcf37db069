"""The experiment with cycles: its cases are settings with numbers of processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlstress.errors import UsageError
from sqlstress.experiment import Alike, Behaviour, CommandLine, Experiment, Words
from sqlstress.options.option import LOAD, SWEEP, chosen, option, options_of
from sqlstress.options.parsing import choice, choices, duration, whole
from sqlstress.plan import Request, check_locking, is_exclusive
from sqlstress.report.case import Case, common, otherwise

PUBLISHED = ("delete", "delete-tx", "wal", "wal-tx", "wal-tx-off")
"""The published settings: journal; tx: in a transaction; off: without automatic checkpoints."""
SETTINGS = (*PUBLISHED, "wal-off", "delete-cycle", "wal-cycle", "wal-cycle-off")
WORDS = {"run": "tx", "cycle": "cycle"}
"""What one transaction holds → the word for it in the name of a setting."""


@dataclass(frozen=True, slots=True)
class Cycling:
    """The experiment with cycles: insert rows, delete all of them, insert rows again."""

    cycles: int = option(
        whole(1, 100_000), 100, LOAD, "Number of cycles: insert rows, delete all, insert rows."
    )
    rows: int = option(whole(1, 10_000), 5, LOAD, "Rows per insertion, each in its own statement.")
    transaction: str = "none"
    """What one transaction holds: none of ours (each statement is its own), a cycle, or the whole run."""
    timeout_s: float | None = option(
        duration(0.001),
        "60s",
        LOAD,
        "Stop a run after this time. The report shows the completed cycles.",
        name="timeout",
        metavar="TIME",
        meaning="Time of work after which a run stops, in seconds; None: never.",
        unsaid=None,
    )


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    settings: tuple[str, ...] = option(
        choices(*SETTINGS),
        ",".join(PUBLISHED),
        SWEEP,
        f"Settings to measure: a list of {', '.join(SETTINGS)}. In these names, tx means one transaction for "
        "the run, cycle one for each cycle, and off no automatic checkpoints.",
        metavar="LIST",
    )
    transaction: str = option(
        choice("cycle", "run"),
        "run",
        LOAD,
        "What one transaction of the tx settings covers: the whole run, or a cycle.",
        metavar="WHAT",
    )


COMMIT_S, STATEMENT_S = 250e-6, 10e-6

CyclesRequest = Request[Cycling, Extra]


def cases(request: CyclesRequest) -> Iterator[Case]:
    """Yield the cases, settings outside, concurrencies inside. Raises UsageError."""
    _check_together(request)
    # With --transaction, tx stands for either of the words that a setting is shown by.
    tx = WORDS[request.extra.transaction]
    for name in dict.fromkeys(name.replace("-tx", f"-{tx}") for name in request.extra.settings):
        journal, *rest = name.split("-")
        frames = request.settings.wal_autocheckpoint if journal == "wal" else None
        settings = request.with_settings(
            journal_mode=journal, wal_autocheckpoint=0 if "off" in rest else frames
        )
        held = next((what for what, word in WORDS.items() if word in rest), "none")
        case = replace(request.case, settings=settings, spec=replace(request.spec, transaction=held))
        for concurrency in request.some("concurrency"):
            yield replace(case, concurrency=concurrency)


def _check_together(request: CyclesRequest) -> None:
    names = request.extra.settings
    if "transaction" in request.given and not any("-tx" in name for name in names):
        raise UsageError("--transaction needs a setting with tx. Add one to --settings.")
    if "wal-autocheckpoint" in request.given and not {"wal", "wal-tx", "wal-cycle"} & set(names):
        raise UsageError("--wal-autocheckpoint needs the setting wal or wal-tx. Add one to --settings.")
    check_locking(request)
    if is_exclusive(request.settings) and any(name.startswith("wal") for name in names):
        raise UsageError(
            "PRAGMA locking_mode=exclusive hides the WAL index, so checkpoints cannot be counted. Use it "
            "with --settings delete,delete-tx only."
        )


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
    command=CommandLine(
        name="cycles",
        summary="Insert, delete all, insert again: the time of each cycle.",
        help=(
            "Measure cycles of inserting rows, deleting all of them and inserting again, under five "
            "settings.\n\n"
            "The settings are: rollback journal (delete) or WAL; each row or the whole run in one "
            "transaction "
            "(tx); WAL without automatic checkpoints (off). The report shows the time and the checkpoints of "
            "each cycle. It takes about a minute."
        ),
        main_options=("settings", "concurrency", "cycles", "rows", "synchronous", "output"),
        example="sqlstress cycles --settings wal,wal-tx --synchronous normal",
    ),
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
            help="PRAGMA wal_autocheckpoint for the settings wal and wal-tx.",
        ),
        *common("page-size", "cache-size", "mmap-size", "pragma", "busy-timeout"),
        *common("driver", "verify", "max-failed", "seed"),
    ),
    extra=Extra,
    cases=cases,
    alike=Alike(
        one_table=_one_table, same_work=lambda case: replace(case, spec=replace(case.spec, timeout_s=None))
    ),
    words=Words(work_of=setting_of, in_label=frozenset(("transaction",)), unit="statement", counted="cycles"),
    behaviour=Behaviour(guess_s=_guess_s),
    work="sqlstress.experiments.cycles.work:CyclesWork",
    worker="sqlstress.experiments.cycles.worker:CyclesSource",
    companions={"cycle watcher": "sqlstress.experiments.cycles.watcher:CycleWatcher"},
    shown="sqlstress.experiments.cycles.show:CyclesShown",
)
