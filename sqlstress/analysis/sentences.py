"""Sentences that several experiments share: each function writes a sentence from facts.

The parameters of a function are the facts, and its name is the code of the finding in JSON reports. Facts
that end in _ns are times in ns, and shares are from 0 to 1. `where` is a label of cases, such as "8 processes
on 1 bucket". A sentence does not mention a fact that is None, "" or False. A pass is one trial of each case.
A target, such as SQLite or PostgreSQL, stores the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlstress.analysis import wording
from sqlstress.analysis.finding import aside, causal, grave
from sqlstress.analysis.wal_growth import OVERLAP, SNAPSHOT, UNCOPIED
from sqlstress.analysis.wording import (
    Change,
    FailureTime,
    between,
    capital,
    change_figures,
    change_text,
    duration,
    failure_time,
    listing,
    percent,
    processes,
    size,
    times,
    with_interval,
)
from sqlstress.statistics.compare import EQUAL, TOO_FEW, UNCLEAR, Ratio
from sqlstress.statistics.sequential import FASTER, SLOWER
from sqlstress.statistics.units import digits, format_duration, format_ms, plural, rounded


class FailedCheck(NamedTuple):
    """Check of the data that failed in one or more trials of a case."""

    name: str
    problems: int | None
    """Number of problems found, such as wrong rows; None if the check does not count them."""
    checked: int | None
    """Number of checked rows; None if unknown, or if the problems include missing rows."""
    failed: int
    passes: int
    examples: Sequence[str] = ()
    """First counter-examples (wrong rows), as text."""


def _failed_check(check: FailedCheck) -> str:
    of = f" of {digits(check.checked)}" if check.checked is not None else ""
    problems = f", {digits(check.problems)}{of} wrong" if check.problems is not None else ""
    failed = f", in {digits(check.failed)} of {plural(check.passes, 'pass')}" if check.passes > 1 else ""
    examples = f" ({'; '.join(check.examples)})" if check.examples else ""
    return f"{check.name}{problems}{failed}{examples}"


@grave
def data_wrong(*, where: str, checks: Sequence[FailedCheck]) -> str:
    return f"FAILED at {where}: {'; '.join(map(_failed_check, checks))}."


@grave
def data_wrong_elsewhere(*, where: str) -> str:
    return f"Also FAILED at {where}; the JSON report has the counter-examples."


def counterexamples(*, name: str, examples: Sequence[str]) -> str:
    return f"{name}: {'; '.join(examples)}."


@grave
def ended_early(*, reason: str, rounds: str | None = None) -> str:
    progress = f" {rounds}" if rounds else ""
    return f"Ended {'after' if rounds else 'early'}{progress}: {reason}."


@grave
def case_failed(*, where: str, reason: str, partly: bool) -> str:
    return f"{'Only partly' if partly else 'Not'} measured at {where}: {reason}."


@grave
def interrupted(
    *,
    progress: str | None = None,
    trials: int | None = None,
    planned: int | None = None,
    cases: int | None = None,
) -> str:
    if trials is None or planned is None:
        return f"Interrupted{f' after {progress}' if progress else ''}. The results so far are shown."
    if cases is None:
        return f"Interrupted after {digits(trials)} of {plural(planned, 'trial')}."
    return (
        f"Interrupted: {plural(trials, 'trial')} of {digits(cases)} of {plural(planned, 'planned case')} "
        "are shown."
    )


def stopped_at_wrong_data(*, trials: int, planned: int, left_out: str | None = None) -> str:
    missing = f"; not measured: {left_out}" if left_out else ""
    return (
        f"Stopped at the first wrong data, after {digits(trials)} of "
        f"{plural(planned, 'trial')}{missing}. Use --keep-going to measure the rest."
    )


def best(
    *,
    rate: float,
    unit: str,
    where: str,
    unclear: bool = False,
    about: bool = False,
    most: float | None = None,
    equal: bool = False,
) -> str:
    lead = "No clear best" if unclear else "Best"
    to = f" to {rounded(most)}" if most is not None else ""
    return (
        f"{lead}: {'about ' if about else ''}{rounded(rate)}{to} {unit} per second with {where}"
        f"{' (about equal)' if equal else ''}."
    )


def highest(*, rate: float, unit: str, where: str, advice: str) -> str:
    return (
        f"Highest: {rounded(rate)} {unit} per second with {where}. Too few trials to tell which is best: "
        f"{advice}."
    )


class Noise(NamedTuple):
    """Reason why noise hides a difference: too few trials were made."""

    passes: int
    """Number of trials of each case that were made."""
    share: float
    """Difference that these trials cannot distinguish from noise, as a share: 0.1 is 10%."""
    enough: int | None
    """Number of trials of each case that would show the difference; None if too many to advise."""
    too: int
    """Largest value of `enough`. More trials of each case are never advised."""


def _noise(noise: Noise) -> str:
    if noise.enough is None:
        more = f", nor could {digits(noise.too)}"
    else:
        more = f": use --repeat {digits(noise.enough)}"
    return f"{plural(noise.passes, 'pass')} cannot show a difference of {percent(noise.share)}{more}"


def _too_few(advice: str) -> str:
    return f"Too few trials to tell a difference from noise: {advice}."


def cannot_tell(*, advice: str | None = None, noise: Noise | None = None) -> str:
    if noise:
        return f'Reason for "cannot tell": {_noise(noise)}.'
    return _too_few(advice or "")


def _on(where: str | None) -> str:
    return f"On {where}, " if where else ""


def still_rising(*, most: int, where: str | None = None) -> str:
    return capital(
        f"{_on(where)}throughput still rises at {processes(most)}, the most measured: try more with "
        "--concurrency."
    )


def plateau(
    *,
    enough: int,
    share: float,
    where: str | None = None,
    most: int | None = None,
    fall: Ratio | None = None,
    unclear: int | None = None,
) -> str:
    text = f"{_on(where)}any gain beyond {processes(enough)} is below {percent(share)}"
    if most is not None and fall is not None:
        text += f", and {processes(most)} reach only {with_interval(fall, 'the best')}"
    if unclear is not None:
        text += f". Cannot tell whether throughput rises beyond {processes(unclear)}"
    return capital(f"{text}.")


def scaling_unclear(
    *, first: int, noise: Noise, where: str | None = None, less: int | None = None, most: float | None = None
) -> str:
    rises = f"throughput rises beyond {processes(less)}; " if less is not None else ""
    if most is None:
        gain = f"cannot tell whether throughput rises beyond {processes(first)}"
    else:
        gain = f"any gain beyond {processes(first)} is at most {percent(most)}"
    return capital(f"{_on(where)}{rises}{gain}. {capital(_noise(noise))}.")


class LayoutGain(NamedTuple):
    """Throughput of a layout (number of buckets) compared with another layout."""

    layout: str
    processes: int
    ratio: Ratio
    unclear: bool
    """Whether noise hides which layout has the higher throughput."""


def _layout_gain(gain: LayoutGain) -> str:
    at_most = f"at {processes(gain.processes)}"
    if gain.unclear:
        return f"cannot tell whether {gain.layout} gave more {at_most} ({between(gain.ratio)} times)"
    return f"{gain.layout} gave {with_interval(gain.ratio, 'as much')} {at_most}"


def layouts(*, base: str, others: Sequence[LayoutGain]) -> str:
    return f"Compared with {base}: {listing(list(map(_layout_gain, others)))}."


class LayoutChange(NamedTuple):
    """Labels of two compared layouts (numbers of buckets), such as "20 buckets"."""

    layout: str
    base: str


def waits(
    *,
    most: int,
    change: LayoutChange,
    wait_before_ns: float | None = None,
    wait_ns: float | None = None,
    fairness_before: float | None = None,
    fairness: float | None = None,
) -> str:
    compared = f"With {change.layout} instead of {change.base} at {processes(most)}"
    changes = []
    if wait_before_ns is not None and wait_ns is not None:
        verb = "rose" if wait_ns > wait_before_ns else "fell"
        changes.append(f"the longest wait {verb} from {duration(wait_before_ns)} to {duration(wait_ns)}")
    if fairness_before is not None and fairness is not None:
        verb = "rose" if fairness > fairness_before else "fell"
        changes.append(f"fairness {verb} from {rounded(fairness_before, 2)} to {rounded(fairness, 2)}")
    first, *others = changes or [""]
    return ". ".join([f"{compared}, {first}", *map(capital, others)]) + "."


def starvation(
    *, where: str, fairness: float | None = None, longest_ns: float | None = None, remedy: str | None = None
) -> str:
    signs = []
    if fairness is not None:
        signs.append(f"shares were uneven (fairness down to {rounded(fairness, 2)}; 1 is equal)")
    if longest_ns is not None:
        signs.append(f"the longest wait was {duration(longest_ns)}")
    return f"Starvation at {where}: {' and '.join(signs)}.{f' {remedy}' if remedy else ''}"


class CommitWorth(NamedTuple):
    """Durability of commits, and the targets (such as SQLite) that have this durability."""

    sides: Sequence[str]
    worth: str
    """Durability of a commit as text; empty if unknown."""


def not_comparable(
    *,
    unknown: Sequence[str] | None = None,
    worths: Sequence[CommitWorth] | None = None,
    can_be_set: bool = False,
) -> str:
    if unknown:
        return f"Not comparable: the durability of {listing(unknown)} is not known."
    listed = "; ".join(f"{listing(each.sides)}: {each.worth or 'not known'}" for each in worths or ())
    advice = " Choose a --synchronous that gives all the same durability." if can_be_set else ""
    return f"Not comparable: commits differ in durability ({listed}).{advice}"


class SidesAhead(NamedTuple):
    """Targets (such as SQLite) with the highest throughput at given numbers of processes and files."""

    ahead: Sequence[str]
    """Names of the targets, such as SQLite, that lead or may lead."""
    behind: Sequence[str]
    where: str
    unclear: bool = False
    """Whether `ahead` has several targets, and noise hides the leader among them."""
    low: float | None = None
    """Lower bound of the leader's throughput / the next target's; None for several leaders."""
    high: float | None = None


def _sides_ahead(sides: SidesAhead) -> str:
    if sides.unclear:
        return f"cannot tell which of {listing(sides.ahead)} leads with {sides.where}"
    if len(sides.ahead) > 1:
        lead = " and lead" if sides.behind else ""
        return f"{listing(sides.ahead)} are about equal{lead} with {sides.where}"
    text = f"{sides.ahead[0]} leads with {sides.where}"
    if sides.low is None or sides.high is None:
        return text
    following = "the next" if len(sides.behind) > 1 else listing(sides.behind)
    return f"{text} ({rounded(sides.low, 2)} to {rounded(sides.high, 2)} times {following})"


def leads(
    *,
    sides: Sequence[str],
    worth: str = "",
    places: Sequence[SidesAhead] | None = None,
    noise: Noise | None = None,
    advice: str | None = None,
) -> str:
    if advice:
        return f"Cannot tell which of {listing(sides)} leads. {_too_few(advice)}"
    doubt = f" {capital(_noise(noise))}." if noise else ""
    return f"With {worth}: {'; '.join(map(_sides_ahead, places or ()))}.{doubt}"


class ValueRatio(NamedTuple):
    """Throughput with a value of an option, compared with the option's first value."""

    value: str
    base: str
    """First value of the option, with which `value` is compared."""
    times: float
    """Throughput with `value` divided by that with `base`."""
    ratio: Ratio | None
    """Ratio `times` with its interval; None for too few trials."""
    verdict: str
    """DIFFERENT, EQUAL, UNCLEAR or TOO_FEW of `statistics.compare`."""


def _value_ratio(found: ValueRatio) -> str:
    if found.ratio is None:
        return f"{found.value} reached {times(found.times)} {found.base}"
    interval = between(found.ratio)
    if found.verdict == EQUAL:
        return f"{found.value} is about equal to {found.base} ({interval} times)"
    if found.verdict == UNCLEAR:
        return f"cannot tell whether {found.value} differs from {found.base} ({interval} times)"
    return f"{found.value} reached {times(found.times)} {found.base} ({interval})"


def answer(
    *,
    setting: str,
    values: Sequence[ValueRatio],
    unit: str,
    places: str | None = None,
    advice: str | None = None,
    noise: Noise | None = None,
) -> str:
    scope = f", as the mean over {places}" if places else ""
    doubt = f" {_too_few(advice)}" if advice else f" {_noise(noise)}." if noise else ""
    return f"{setting}: {'; '.join(map(_value_ratio, values))}. Compared in {unit} per second{scope}.{doubt}"


class ValueRange(NamedTuple):
    """Cases in which an option's value gains most and least throughput, relative to the first value."""

    value: str
    most: float
    """Highest ratio of the value's throughput to that of the first value, in the case `where`."""
    where: str
    least: float
    """Lowest ratio of the value's throughput to that of the first value, in the case `elsewhere`."""
    elsewhere: str


def answer_by_place(*, values: Sequence[ValueRange]) -> str:
    ranges = (
        f"{each.value} reached {times(each.most)} at {each.where} but {times(each.least)} at {each.elsewhere}"
        for each in values
    )
    return f"{'; '.join(ranges)}."


def proof_ok(*, where: str, checks: Sequence[str], note: str | None = None) -> str:
    reason = f": {note}" if note else ""
    return f"Partly verified at {where} ({listing(checks)}){reason}."


@grave
def proof_unknown(*, where: str, checks: Sequence[str], note: str | None = None) -> str:
    reason = f": {note}" if note else ""
    return f"Could not be verified at {where} ({listing(checks)}){reason}."


def not_steady(*, where: str, change: float) -> str:
    slower_or_faster = f"{percent(abs(change))} {'faster' if change > 0 else 'slower'} than"
    compared = f"{times(1 + change)} as fast as" if change >= 1 else slower_or_faster
    return (
        f"Not steady at {where}: the second half of the window was up to {compared} the first. Use a longer "
        "--duration."
    )


@aside
def harness_cost(*, share: float, where: str, cost_ns: float, unit: str) -> str:
    return (
        f"Harness overhead: at most {percent(share)} of worker time (at {where}); {duration(cost_ns)} per "
        f"{unit} with a store that does nothing."
    )


@aside
def proof_cost(*, share: float, where: str) -> str:
    return (
        f"Verification took up to {percent(share)} of the window (at {where}). Use --verify none to "
        "measure without it."
    )


class Taken(NamedTuple):
    """Share of a resource that other programs took, and the affected cases."""

    share: float
    """Largest share that other programs took in any trial, from 0 to 1."""
    where: str


def other_load(*, stolen: bool = False, processors: Taken | None = None, disk: Taken | None = None) -> str:
    text = ""
    if processors:
        takers = "Other guests of the hypervisor" if stolen else "Other programs"
        text = f"{takers} took up to {percent(processors.share)} of the processors {processors.where}. "
    if disk:
        text += f"Other programs kept the disk busy up to {percent(disk.share)} of the time {disk.where}. "
    return f"{text}Measure again on a quieter machine."


def throttled(*, where: str) -> str:
    return f"Processors were slowed down for heat {where}: let them cool, then go on."


def quota_throttled(*, cores: str, share: float, where: str, stopped_ns: float | None = None) -> str:
    stopped = f" (for {duration(stopped_ns)} in all)" if stopped_ns is not None else ""
    return (
        f"The CPU quota of {cores} cores stopped the processes in up to {percent(share)} of its "
        f"periods{stopped} {where}. Rates and waits are limited by the quota. Raise it, or use fewer "
        "processes."
    )


def sync_changed(*, before_ns: float, after_ns: float, times: float, slower: bool = False) -> str:
    return (
        f"A sync took {format_ms(before_ns)} ms before and {format_ms(after_ns)} ms after the measurement "
        f"(two samples each): the disk became at least {wording.times(times)} as "
        f"{'slow' if slower else 'fast'}. These figures mix both speeds. Measure again before you compare "
        "them with another run."
    )


def saturated(*, where: str, share: float, several: bool = False, skipped: bool = False) -> str:
    skipped_text = (
        "Operations that were too late were skipped (--latency-limit); latencies cover the others."
        if skipped
        else "The queue keeps growing, so latencies depend on the length of the window."
    )
    return (
        f"Saturated at {where}: {percent(share)}{' or more' if several else ''} of the due operations "
        f"were done. {skipped_text}"
    )


def kept_up_unclear(*, where: str) -> str:
    return f"Cannot tell whether {where} kept up: use a longer --duration."


def harness_late(*, where: str, late_ns: float, p99_ns: float, most: str | None = None) -> str:
    highest = f" ({most})" if most else ""
    return (
        f"At {where}, sqlstress itself started 1% of the operations at least {duration(late_ns)} late. "
        "The latencies include this delay, which the database did not cause: p99 is "
        f"{duration(p99_ns)}{highest}."
    )


class TracedStep(NamedTuple):
    """SQL statement of the user's code that is part of a suspected fault."""

    statement: str
    at: str
    """File and line of the call that ran the statement; empty if unknown."""


def _step(step: TracedStep) -> str:
    return f"{step.statement} ({step.at})" if step.at else step.statement


@causal
def breaking_step(
    *,
    kind: str,
    transaction: str,
    check: str,
    others: str = "",
    first: TracedStep | None = None,
    then: TracedStep | None = None,
    committed_at: str = "",
) -> str:
    """Return a sentence on the step after which a check fails, in an order of calls that sqlstress made.

    - kind: "alone" (calls of a single process), "in turn" (of two processes), "half" (a pause within a call
      of `transaction`) or "between" (calls of another process, during such a pause)
    - others: the calls of the other process, such as "sell, restock"
    - first, then: the statements before and after the pause; without a pause, the first and last statement
    - committed_at: line of the COMMIT before the pause, or empty
    """
    steps = [_step(step) for step in (first, then) if step]
    if kind in ("alone", "in turn"):
        ran = ", then ".join(dict.fromkeys(steps))
        who = "A single process made calls" if kind == "alone" else "Two processes made calls in turn"
        return (
            f"{transaction} goes wrong without any overlap of calls. {who}, and {check} failed after a call "
            f"that ran {ran}. Look at these statements, at what follows an error, and at values of earlier "
            "calls."
        )
    place = f"between {' and '.join(steps)}" if first and then else f"after {steps[0]}" if first else ""
    place = place or f"before {''.join(steps) or 'its first statement'}"
    if kind == "half":
        too_early = f" COMMIT at {committed_at} comes too early." if committed_at else ""
        return (
            f"Cause: {transaction} shows work that is half done. {place[0].upper()}{place[1:]}, {check} "
            f"fails for other processes.{too_early} Put all writes of the call into one transaction."
        )
    others = others or transaction
    tried = f"sqlstress let another process run {others} {place}, and then {check} failed."
    if not first:
        return (
            f"Cause: a race of {transaction} with {others}. {tried} So {transaction} uses a value from "
            "before, such as a time or a row of an earlier call. Get it after BEGIN IMMEDIATE."
        )
    return (
        f"Cause: a race of {transaction} with {others}. {tried} Put both statements into one transaction "
        "that begins with BEGIN IMMEDIATE, or let the second test what the first has read or claimed."
    )


@causal
def suspicion(
    *,
    kind: str,
    transaction: str,
    table: str,
    first: TracedStep,
    then: TracedStep,
    failed: bool = False,
    held: bool = False,
    seen: bool = False,
    effect: str = "",
    late: bool = False,
    kept: str = "",
    ignored_lock: str = "",
) -> str:
    """Return a sentence on a suspected fault of the user's code, such as a lost update.

    The user's `transaction` runs the statement `first`, and later `then`. `table` is the table at risk.

    - kind, effect: keys of _SUSPICIONS, such as "read-outside" and "double-insert"; `effect` is preferred
    - failed, held: whether a check of the data failed (the fault is probable), and whether all passed
    - seen: whether a check failed after an order of calls that sqlstress made, with a pause in `transaction`
    - late: whether Python's sqlite3 began the transaction only after `first`, just before `then`
    - kept: columns that `then` writes back unchanged, because the code saves whole rows
    - ignored_lock: method of the user's library that locks nothing in SQLite, such as "with_for_update"
    """
    cause = "Cause" if seen else "Probable cause" if failed else "Suspicion"
    cause += ", although every check passed," * (held and not seen)
    steps = f"It runs {_step(first)}." if first == then else f"First {_step(first)}, then {_step(then)}."
    use = f": {_step(first)}" if first.statement else ""
    text = _SUSPICIONS.get(effect, _SUSPICIONS[kind])
    begins = " Python's sqlite3 begins a transaction at the first write, so the SELECT is outside." * late
    locks = f" SQLite ignores {ignored_lock}." if ignored_lock else ""
    sentence = text.format(cause=cause, name=transaction, table=table, steps=steps, use=use, kept=kept)
    return f"{sentence}{begins}{locks}"


@aside
def unbroken_suspicion(*, transaction: str, first: TracedStep, then: TracedStep, orders: int) -> str:
    return (
        f"{transaction} looks like a race ({_step(first)}, then {_step(then)}), but every check held in "
        f"{plural(orders, 'order')} of calls that sqlstress made with pauses in it."
    )


_SUSPICIONS = {
    "read-outside": (
        "{cause} of a lost update: {name} reads {table} outside of the transaction that writes it. {steps} "
        "Another process can write in between. Read after BEGIN IMMEDIATE, or let one statement read and "
        "write."
    ),
    "whole-row": (
        "{cause} of a lost update: {name} changes a row of {table}, and writes back other columns as it has "
        "read them: {kept}. {steps} Another process can change these in between. Write only the changed "
        "columns, such as save(only=[...]) in Peewee or save(update_fields=[...]) in Django, or read after "
        "BEGIN IMMEDIATE."
    ),
    "double-insert": (
        "{cause} of a double insert: {name} finds no row in {table}, and inserts it in another transaction. "
        "{steps} Two processes can both insert it. Make a UNIQUE index and use INSERT ... ON CONFLICT, or "
        "read after BEGIN IMMEDIATE."
    ),
    "double-insert-despite-key": (
        "{cause} of a double insert: {name} finds no row in {table}, and inserts it in another transaction. "
        "{steps} Two processes can both insert it, in spite of the clause for conflicts: no UNIQUE index "
        "refuses the second row, because NULLs in a key count as different. Create a UNIQUE index without "
        "NULLs, such as a partial index, or read after BEGIN IMMEDIATE."
    ),
    "double-insert-in-range": (
        "{cause} of a double insert: {name} finds no row of {table} in a range, and inserts one in another "
        "transaction. {steps} Two processes can both insert a row, and a UNIQUE index cannot refuse it. Read "
        "after BEGIN IMMEDIATE."
    ),
    "insert-on-old-data": (
        "{cause} of a race: {name} reads {table}, and inserts into it in another transaction. {steps} Another"
        " process can write in between: a count, a limit or a next number is then wrong. Read after BEGIN "
        "IMMEDIATE, or use INSERT ... SELECT; a UNIQUE index refuses equal values, but OR IGNORE hides that."
    ),
    "double-claim": (
        "{cause} of a double claim: {name} looks for a row in {table}, and changes it in another transaction."
        " {steps} Two processes can both take it. Claim it before any other work: repeat the condition in the"
        " WHERE of the UPDATE and look at its row count, use one UPDATE ... RETURNING, or read after BEGIN "
        "IMMEDIATE."
    ),
    "double-use": (
        "{cause} of a double use: {name} reads {table}, and deletes what it has read in another transaction. "
        "{steps} Two processes can both use it. Use DELETE ... RETURNING, look at the row count of DELETE, or"
        " read after BEGIN IMMEDIATE."
    ),
    "copy-of-read-outside": (
        "{cause} of a stale copy: {name} writes {table} from what it has read outside of that transaction. "
        "{steps} Another process can change the source in between. Read it after BEGIN IMMEDIATE."
    ),
    "guarded-by-stale-read": (
        "{cause} of a check that no longer holds: {name} checks what it has read of {table} outside of the "
        "transaction that writes it. {steps} Another process can write in between. Repeat the condition in "
        "the WHERE of the write and look at its row count, or read after BEGIN IMMEDIATE."
    ),
    "maybe-guarded-by-stale-read": (
        "{name} reads {table} outside of the transaction that writes it. {steps} SQLite computes the new "
        "value, so no update is lost. But if the code checks first what it has read, such as a limit, repeat"
        " the condition in the WHERE of the write, or read after BEGIN IMMEDIATE."
    ),
    "decision-on-old-data": (
        "{cause} of a decision on old data: {name} checks what it has read, and writes {table} in another "
        "transaction. {steps} In between, another process can change what was checked. Read it again after "
        "BEGIN IMMEDIATE."
    ),
    "mixed-view": (
        "{cause} of a mixed view: {name} reads two files in a DEFERRED transaction, and in WAL mode the "
        "snapshot of each file begins with its first read. {steps} In between, another process can write "
        "both. Use BEGIN IMMEDIATE, or keep the tables in one file."
    ),
    "split-view": (
        "{cause} of a mixed view: {name} combines the results of two queries without a transaction. {steps} "
        "In between, another process can write both, so each query sees another state. Put the queries "
        "between BEGIN and COMMIT, or use one query."
    ),
    "value-from-memory": (
        "{cause} of a lost update: {name} writes the next number into {table}, but reads the last one in no "
        "query{use}. The program keeps it in a variable, and overwrites what other processes have written. "
        "Use SET n = n + 1 ... RETURNING n."
    ),
    "value-from-earlier-call": (
        "{cause} of a lost update: {name} writes {table} from values that an earlier call has read, and that "
        "an object or a variable has kept. {steps} Another process can write in between. Read the row in the "
        "transaction that writes it: with SQLAlchemy, leave out expire_on_commit=False; with Django or "
        "Peewee, get the object again. Or let SQLite compute it: SET n = n + 1."
    ),
    "lock-without-write": (
        "{name} took the write lock and only read, in all calls that were examined. {steps} All writers wait "
        "for it. If it never writes, begin it with BEGIN, which takes no write lock."
    ),
    "unread-rows": (
        "{cause} of lost rows: {name} reads rows of {table}, and then deletes or marks all rows that match. "
        "{steps} Rows that come in between are deleted or marked unread. Use the keys that were read, "
        "RETURNING, or read after BEGIN IMMEDIATE."
    ),
    "expired-lease": (
        "{cause} of work done twice: {name} claims a row of {table} for a limited time, and later writes it "
        "without a check of the claim. {steps} When the time is over, another process can claim the row, too."
        " Compare the claim's owner or time in the WHERE of the write, look at its row count, and do the work"
        " in the transaction of that write."
    ),
    "unread-row-count": (
        "{cause} of work done twice: the UPDATE of {name} changes no row of {table} if another process was "
        "first, and the code does not read its row count. {steps} Continue only if the row count is 1, or "
        "use UPDATE ... RETURNING."
    ),
    "unread-version": (
        "{cause} of a lost change: the UPDATE of {name} changes no row of {table} if another process has "
        "changed the version, and the code does not read its row count. {steps} If the row count is 0, read "
        "again and repeat."
    ),
    "time-in-seconds": (
        "{cause} of a lost update: {name} compares a time in whole seconds to see whether {table} has "
        "changed. {steps} Two changes within a second have the same time. Compare a number instead: SET "
        "version = version + 1 ... WHERE version = ?."
    ),
    "last-row": (
        "{cause} of mixed rows: {name} takes the last row of {table} for the row that it has inserted. "
        "{steps} In between, another process can insert a row. Use the cursor's lastrowid, or INSERT ... "
        "RETURNING."
    ),
    "reused-id": (
        "{cause} of lost rows: {name} stores the id of a row of {table}, and deletes the row. {steps} SQLite "
        "gives the id to a later row, which then looks known. Declare the id INTEGER PRIMARY KEY "
        "AUTOINCREMENT, or store a unique value."
    ),
    "kept-id": (
        "{cause} of mixed rows: {name} stores the id of a row of {table} in another table, and deletes the "
        "row. {steps} SQLite gives the id of the last row to a later row, so what was stored seems to belong "
        "to both. Declare the id INTEGER PRIMARY KEY AUTOINCREMENT (AutoIncrementField in Peewee), use a "
        "unique value, or keep the row and mark it as deleted."
    ),
    "passed-over": (
        "Rows of {table} are lost: a query reads the rows above the largest {kept} that it has seen, and "
        "rows that are not above it were committed later. {steps} A value that is taken before the write "
        "lock, such as a time, does not have the order of the commits. Follow an INTEGER PRIMARY KEY "
        "AUTOINCREMENT id, which SQLite assigns under the write lock, or mark each row that was read."
    ),
    "followed-id": (
        "{cause} of lost rows: {name} reads the rows of {table} above the last id that it has stored. "
        "{steps} Once the last row is deleted, SQLite gives its id again, to a row that is then passed over. "
        "Declare the id INTEGER PRIMARY KEY AUTOINCREMENT."
    ),
    "offset-pages": (
        "{cause} of rows that are read twice or missed: {name} reads {table} in pages, each in another "
        "transaction. {steps} A row that is inserted or deleted in between shifts all rows behind it. "
        "Continue after the last key (WHERE id > ? ORDER BY id LIMIT n), or read all pages in a transaction."
    ),
    "id-of-another-row": (
        "{cause} of mixed rows: {name} reads lastrowid after an INSERT into {table} that adds no row if the "
        "row exists. {steps} lastrowid is then the id of an earlier row. Read the id with SELECT, or use ON "
        "CONFLICT DO UPDATE ... RETURNING id."
    ),
    "reset-column": (
        "{cause} of lost changes: {name} replaces rows of {table}, and columns that the statement does not "
        "name get their default. {steps} Use INSERT ... ON CONFLICT DO UPDATE, which keeps the other columns."
    ),
    "null-in-conflict-key": (
        "{cause} of double rows: {name} inserts into {table} with ON CONFLICT, and a column of the key is "
        "NULL{use}. NULLs count as different, so no row conflicts, and each call adds a row. Store a value "
        "such as '' instead of NULL, or use an expression: ON CONFLICT (coalesce(column, '')) with such an "
        "index."
    ),
    "null-twin": (
        "{cause} of double rows: {name} inserts a row into {table} that equals another in the columns of a "
        "UNIQUE key, and some of these are NULL{use}. NULLs count as different, so the key refuses no such "
        "row. Declare the columns NOT NULL, with a value such as 0 or '', or create a UNIQUE index on the "
        "others WHERE the column IS NULL."
    ),
    "replaced-parent": (
        "{cause} of lost rows in {table}: {name} replaces a row, which deletes the old row, and ON DELETE "
        "applies to the rows that refer to it{use}. Use INSERT ... ON CONFLICT DO UPDATE."
    ),
    "skipped-trigger": (
        "{cause} of wrong data from triggers: {name} replaces rows of {table}, and SQLite deletes the old "
        "row without the DELETE triggers, because recursive_triggers is off{use}. Run PRAGMA "
        "recursive_triggers=ON in each connection, or use INSERT ... ON CONFLICT DO UPDATE, with a trigger "
        "for UPDATE."
    ),
    "shared-staging": (
        "{cause} of mixed rows: {name} fills {table}, and copies all its rows in another transaction. "
        "{steps} Another process can empty or fill it in between. Use one transaction that begins with BEGIN "
        "IMMEDIATE, or a temporary table (CREATE TEMP TABLE), which each connection has for itself."
    ),
    "text-time": (
        "{cause} of a wrong condition: {name} compares a number with strftime('%s'), which is a text{use}. "
        "SQLite takes every number for less than every text. Use CAST(strftime('%s', 'now') AS INTEGER), or "
        "unixepoch() from SQLite 3.38 on."
    ),
    "mixed-times": (
        "{cause} of a wrong comparison: {name} uses two formats of time for {table}, with 'T' before the "
        "hour and with a space. {steps} These are texts, and a space is less than 'T', so times of the same "
        "day compare wrongly. Use one format."
    ),
    "second-save": (
        "{cause} of a change made twice: {name} saves the same row of {table} twice with an F() expression. "
        "{steps} The expression stays on the object after save(), and each save() applies it. Call "
        "refresh_from_db() after save(), or save only other fields: save(update_fields=[...])."
    ),
    "connection-mixed": (
        "{cause} of half transactions: threads or tasks of {name} share a connection, and one writes in the "
        "transaction of another. {steps} Use a lock for each transaction, or a connection for each task."
    ),
    "connection-forked": (
        "{cause} of corruption: {name} uses a connection in a process that was forked after it was "
        "opened{use}. Open a connection in each process."
    ),
}
"""Sentences on suspected faults, by kind of the fault, or by effect (see `suspicion`)."""


def not_rehearsed(*, why: str, transactions: Sequence[str] | None = None) -> str:
    names = f" of {listing(transactions)}" if transactions else ""
    return f"The statements{names} were not examined for suspicions: {why}."


def more_in_json(*, count: int, what: str, of: str | None = None) -> str:
    return f"The JSON report has {plural(count, f'more {what}')}{f' of {of}' if of else ''}."


@grave
def touched_file(
    *,
    file: str,
    moved: bool,
    program: str | None = None,
    count: int | None = None,
    at: str | None = None,
    errors: Sequence[str] = (),
) -> str:
    subject = f"{program or 'A program'}{f' ({at})' if at else ''}"
    times = "" if count is None else f", {plural(count, 'time')},"
    follow = _consequences(errors)
    if moved:
        return (
            f"{subject} moved, replaced or deleted {file}{times} while it was in use. Open connections go on "
            f"with the old file, so their commits are lost, and a new file with the old -wal is damaged."
            f"{follow} Use VACUUM to compact a file in use. Before you replace it, close all connections, or "
            "restore with .restore or Connection.backup()."
        )
    return (
        f"{subject} copied {file}{times} while it was in use. Such a copy lacks the commits that are only in "
        f"-wal, and may be torn.{follow} Use VACUUM INTO, .backup or Connection.backup()."
    )


@causal
def repeated_transaction(
    *,
    call: str,
    count: int,
    most: int,
    at: str | None = None,
    committed: str | None = None,
    after: str = "",
) -> str:
    where = f" at {at}" if at else ""
    if after == "COMMIT":
        return (
            f"{plural(count, 'call')} of {call} wrote again after SQLite had refused COMMIT{where}. "
            "The transaction was still open, so the writes were done twice. ROLLBACK before you repeat, or "
            "repeat only COMMIT."
        )
    if after == "BEGIN":
        return (
            f"{plural(count, 'call')} of {call} committed {committed}, SQLite refused the next BEGIN{where}, "
            "and the call ran both transactions again: the first was done twice. Put both into one "
            "transaction, or repeat only the second."
        )
    if after == "ROLLBACK":
        return (
            f"{plural(count, 'call')} of {call} ran ROLLBACK after a refused write{where}, went on, and "
            "committed only the later writes: ROLLBACK undid all earlier writes of the transaction. Use "
            "INSERT ... ON CONFLICT, or a SAVEPOINT for each row, or repeat the whole transaction."
        )
    if after == "error":
        return (
            f"{plural(count, 'call')} of {call} wrote{f' ({committed})' if committed else ''}, caught the "
            f"error of the next write{where}, and committed: the first write stays without the second, "
            "because an error undoes only its statement. ROLLBACK after the error, for example by an "
            "exception that leaves the block `with connection` or `atomic()`."
        )
    if committed:
        return (
            f"{plural(count, 'call')} of {call} committed a write ({committed}), and SQLite refused the "
            f"next{where}. The first write stays, and is done twice if the call is repeated. Put all writes "
            "of a call into one transaction, which begins with BEGIN IMMEDIATE, and ROLLBACK it after an "
            "error. In autocommit mode, `with connection` begins no transaction; otherwise, an inner `with "
            "connection` commits the outer transaction."
        )
    return (
        f"{plural(count, 'call')} of {call} repeated a transaction in which SQLite had refused a write"
        f"{where} (up to {plural(most, 'time')}). In each attempt, what {call} does outside of SQLite "
        "between BEGIN and COMMIT was done again, and values of an earlier attempt are old. Read again in "
        "each attempt and do the rest after COMMIT, or take the write lock first, with BEGIN IMMEDIATE."
    )


@causal
def overlap(
    *, count: int, first: TracedStep, then: TracedStep, end: str | None = None, end_at: str | None = None
) -> str:
    ended = f" {end}{f' ({end_at})' if end_at else ''} then ended the work of both." if end else ""
    return (
        f"Threads share a connection, and {plural(count, 'transaction')} of one contained writes of another. "
        f"First {_step(first)}, then in another thread {_step(then)}.{ended} A COMMIT or ROLLBACK of one "
        "thread applies to the writes of both. Hold the lock from the first statement to COMMIT or ROLLBACK, "
        "or use a connection for each thread."
    )


@causal
def pragma_without_effect(
    *,
    statement: str,
    count: int,
    at: str | None = None,
    began: str | None = None,
    began_at: str | None = None,
    write: str | None = None,
) -> str:
    where = f" ({at})" if at else ""
    if write:
        return (
            f"{statement}{where} had no effect, {plural(count, 'time')}: each write of the call had "
            f"committed by itself, first {write}. The connection is in autocommit mode, such as "
            "isolation_level=None or SQLAlchemy's AUTOCOMMIT. Run BEGIN IMMEDIATE before the first write."
        )
    begun = f" that {began}{f' at {began_at}' if began_at else ''} had begun" if began else ""
    return (
        f"{statement}{where} had no effect, {plural(count, 'time')}: it ran in a transaction{begun}, where "
        "SQLite ignores it. Run it before the transaction, first on each connection."
    )


@causal
def deferred_upgrade(
    *, first: TracedStep | None = None, then: TracedStep | None = None, repeated: bool = False
) -> str:
    steps = f" First {_step(first)}, then {_step(then)}." if first and then else ""
    after = " No call failed because of it, so the change only saves time." if repeated else ""
    return (
        f"Transactions begin DEFERRED, read, and then write.{steps} If another process wrote meanwhile, "
        f'SQLite returns "database is locked" at once, whatever the timeout is. Use BEGIN IMMEDIATE.{after}'
    )


def read_committed(*, ways: str) -> str:
    return (
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        f"between. Use {ways}."
    )


def transactions_refused(*, where: str, count: int, share: float, most: str | None = None) -> str:
    highest = f" (at {most})" if most else ""
    return (
        f"At {where}, {plural(count, 'transaction')} gave up. That is "
        f"{'up to ' if most else ''}{percent(share)} of all{highest}. The server refused them because "
        "of concurrent transactions. The figures leave them out; an application must retry them "
        "(--max-tries)."
    )


def refused(*, where: str, refused: int, locked: int, retried: bool) -> str:
    if retried:
        return (
            f"Transactions retried at {where}: {digits(refused)} after a serialization failure, "
            f"{digits(locked)} after a deadlock or an unavailable lock. An application must retry them "
            "itself."
        )
    return (
        f"Refused by the server at {where}: {digits(refused)} by a serialization failure, {digits(locked)} "
        "by a deadlock or an unavailable lock."
    )


def long_write(
    *,
    holder: str,
    longest_ns: float,
    lasts: bool = False,
    activity: str | None = None,
    cpu: float | None = None,
    written: int | None = None,
) -> str:
    text = capital(
        f"{holder} {'has kept' if lasts else 'kept'} the write lock for {duration(longest_ns)} in one "
        'transaction. Writers with a shorter busy timeout get "database is locked".'
    )
    if activity is None or cpu is None:
        return text
    wrote = "" if written is None else f" and wrote {size(written) if written else 'nothing'} to the disk"
    return f"{text} It used {percent(cpu)} of a processor{wrote} in this time: {_ACTIVITIES[activity]}"


WAITS, COMPUTES = "waits", "computes"
"""Activities of a process during a long transaction: waits for something else, or uses the processor."""
_ACTIVITIES = {
    WAITS: "within the transaction it waits for something else (network, user, sleep). Do that before BEGIN, "
    "or after COMMIT.",
    COMPUTES: "compute before BEGIN, or write fewer rows in each transaction.",
}
"""Advice on a long transaction, by the activity of the process during the transaction."""


def lock_not_seen(*, where: str, samples: int) -> str:
    return (
        f"Nobody was seen with the write lock at {where}, in {plural(samples, 'sample')}: it was held too "
        "briefly, or not at all."
    )


def lock_watch_ended(*, where: str, reason: str) -> str:
    return f"The write lock was not watched to the end at {where}: {reason}."


@grave
def given_up(
    *,
    count: int,
    what: str,
    where: str,
    share: float,
    time: FailureTime | None = None,
    most: str | None = None,
    shares: Mapping[str, float] | None = None,
    remedy: str | None = None,
) -> str:
    how = f", {failure_time(time)}" if time else ""
    by_name = [f"{name} {percent(part)}" for name, part in (shares or {}).items()]
    by_transaction = f"; by transaction: {listing(by_name)}" if by_name else ""
    return (
        f'{plural(count, what)} failed with "database is locked" at {where}{how}. That is '
        f"{'up to ' if most else ''}{percent(share)} of all{f' (at {most})' if most else ''}"
        f"{by_transaction}. The figures leave them out.{f' {remedy}' if remedy else ''}"
    )


@grave
def too_many_failed(*, where: str, share: float, most: str, several: bool = False) -> str:
    return (
        f"At {where}, {'up to ' if several else ''}{percent(share)} of the operations failed, and at most "
        f"{most} may (--max-failed). {'These rows are' if several else 'This row is'} not compared with "
        "others."
    )


def busy_snapshot(*, where: str, count: int, retried: bool = False, refused: int | None = None) -> str:
    if not retried:
        return (
            f"BUSY_SNAPSHOT at {where}: {digits(count)}. A transaction that has read cannot wait for its "
            "turn to write: use BEGIN IMMEDIATE, or retry the whole transaction."
        )
    busy = f", {digits(refused)} after an immediate BUSY" if refused is not None else ""
    return (
        f"Transactions retried at {where}: {digits(count)} after BUSY_SNAPSHOT{busy}. A deferred "
        "transaction that has read cannot wait for its turn to write: use BEGIN IMMEDIATE (--begin "
        "immediate)."
    )


class RateRatio(NamedTuple):
    """Ratio of the rates of two reports in a case."""

    times: float
    """Rate of the later report divided by that of the first report."""
    where: str


class RateRatios(NamedTuple):
    """Ratios of a report's rates to the first report's, for all cases or only the smallest and largest."""

    of: str
    """Letter of the first report, such as A."""
    unit: str
    """Unit of the rates, such as "transactions per second"."""
    ratios: Sequence[RateRatio]
    cases: int | None = None
    """Number of cases if `ratios` has only the smallest and the largest ratio; else None."""


def _rate_ratios(found: RateRatios) -> str:
    first, *others = found.ratios
    if found.cases is not None:
        ends = f"{rounded(first.times, 2)} to {times(found.ratios[-1].times)}"
        return f"{ends} {found.of}'s {found.unit}, over {plural(found.cases, 'case')}"
    return listing(
        [
            f"{times(first.times)} {found.of}'s {found.unit} at {first.where}",
            *(f"{times(ratio.times)} at {ratio.where}" for ratio in others),
        ]
    )


class Claim(NamedTuple):
    """Statement on the rates of reports `a` and `b` (letters), for all cases with equal verdicts."""

    verdict: str
    """DIFFERENT, EQUAL, UNCLEAR or TOO_FEW of `statistics.compare`."""
    a: str
    b: str
    ratios: RateRatios | None = None
    """Ratios of the rates of `b` to those of `a`; None for EQUAL and UNCLEAR."""
    where: Sequence[str] = ()
    """Labels of the cases, such as "at 8 processes" or "in 3 cases"; empty if `ratios` is not None."""
    repeat: int | None = None
    """Number of trials of each case that would rule out chance; None unless TOO_FEW."""
    low: float | None = None
    """Lower end of a range that includes the intervals of all ratios; None without intervals."""
    high: float | None = None
    several: bool = False


def _claim(claim: Claim) -> str:
    ratios = _rate_ratios(claim.ratios) if claim.ratios else ""
    if claim.verdict == TOO_FEW:
        advice = f"use --repeat {digits(claim.repeat or 0)} for both"
        return f"{claim.b} showed {ratios}. That may be chance: {advice}."
    interval = ""
    if claim.low is not None and claim.high is not None:
        bounds = f"{rounded(claim.low, 2)} to {times(claim.high)}"
        interval = f" (95% interval{'s from' if claim.several else ''} {bounds})"
    if claim.verdict == EQUAL:
        return f"{claim.b} and {claim.a} are about equal {listing(claim.where)}{interval}."
    if claim.verdict == UNCLEAR:
        doubt = f"Cannot tell {claim.b} from {claim.a} {listing(claim.where)}{interval}"
        return f"{doubt}: measure longer or use more trials."
    return f"{claim.b} reached {ratios}{interval}."


def comparison(*, claims: Sequence[Claim]) -> str:
    return " ".join(map(_claim, claims))


def reports_not_comparable(
    *, a: str, b: str, reasons: Sequence[str], ratios: RateRatios | None = None, figures: str | None = None
) -> str:
    shown = f"{b} shows {_rate_ratios(ratios)}" if ratios else figures or ""
    return f"{shown}. Do not compare their speed: {listing(reasons)}."


@grave
def arm_failed(*, arm: str, share: float, why: str) -> str:
    return f"In {arm}, {percent(share)} of the operations failed: {why}."


def ab_pass(*, noun: str, allowed: float, change: Change, cells: int | None = None) -> str:
    mean = f" in the mean of {plural(cells, 'cell')}" if cells is not None else ""
    longer = " Use a smaller --max-drop to measure longer."
    return (
        f"PASS: no {noun} of more than {percent(allowed)}{mean}. "
        f"{capital(change_text(change))}.{longer * (change.direction not in (FASTER, SLOWER))}"
    )


def ab_fail(*, changes: Sequence[Change], allowed: float) -> str:
    return (
        f"FAIL: {'; '.join(map(change_text, changes))}. At most {percent(allowed)} is allowed: find out why "
        "before you use B."
    )


def ab_wrong(*, reason: str) -> str:
    return f"FAIL: {reason}. Find out why before you use any figure."


class FailedArm(NamedTuple):
    """Variant (arm) of an A/B test in which too many operations failed."""

    arm: str
    where: str
    share: float
    """Share of the operations that failed, 0 to 1."""
    most: float
    """Largest share that --max-failed allows, 0 to 1."""
    why: str
    """Reason why operations failed, as a clause."""


def ab_not_comparable(*, arms: Sequence[FailedArm]) -> str:
    reasons = (
        f"in {each.arm}, {percent(each.share)} of the operations failed at {each.where}, and at most "
        f"{percent(each.most)} may (--max-failed): {each.why}"
        for each in arms
    )
    return f"Not comparable: {'; '.join(reasons)}."


def ab_inconclusive(*, possible: str, allowed: float, change: Change, advice: str, few: bool = False) -> str:
    return (
        f"INCONCLUSIVE: {possible}{'' if few else ' (the verdict uses a wider interval)'}; "
        f"{percent(allowed)} is allowed. {capital(change_text(change))}. {advice}"
    )


def ab_undecided(*, change: Change | None = None) -> str:
    if change is None:
        return "Undecided: there is no valid pair."
    return f"Undecided: so far {change_figures(change)}. That is too little for a conclusion."


class WindowCount(NamedTuple):
    """Number of windows (measured times of trials) at a rate, and of those that kept the promise."""

    rate: int
    held: int
    windows: int


def limit(
    *,
    promise: str,
    holds: int | None = None,
    breaks: int | None = None,
    about: int | None = None,
    tried: int | None = None,
) -> str:
    kept = f"Holds {digits(holds or 0)}/s: most windows keep {promise}."
    if about is not None:
        return f"{kept} Does not hold {digits(breaks or 0)}/s. The limit is about {digits(about)}/s."
    if holds is not None:
        return f"{kept} No rate up to {digits(tried or 0)}/s is known to miss this."
    missed = f"Does not hold {digits(breaks or 0)}/s: most windows miss {promise}."
    if breaks == 1:
        return f"{missed} Less than one operation per second was not tried."
    return f"{missed} No rate down to {digits(tried or 0)}/s is known to hold."


def limit_unknown(
    *,
    promise: str,
    kept: WindowCount | None = None,
    broken: WindowCount | None = None,
    longer: str | None = None,
) -> str:
    counts = [
        f"at {digits(each.rate)}/s {digits(each.held)} of {plural(each.windows, 'window')} kept it"
        for each in (kept, broken)
        if each
    ]
    shown = f": {', '.join(counts) or 'no window was judged'}"
    return f"Cannot tell which rate holds {promise}{shown}.{f' Measure longer: {longer}.' if longer else ''}"


def limit_not_judged(*, windows: int, late: float = 0, name: str = "", enough: int = 0) -> str:
    count = f"{plural(windows, 'window')} not judged"
    if name:
        operations = plural(enough, "operation")
        return f"{count}: {name} is judged from at least {operations}. Use a longer --duration."
    return (
        f"{count}: the harness itself began operations late, by more than {percent(late)} of the promise. "
        "Use fewer processes or a looser promise."
    )


@causal
def failed_statement(
    *,
    statement: str,
    at: str,
    error: str,
    count: int,
    others: int = 0,
    more_errors: Sequence[str] = (),
    message: str | None = None,
    explanation: str | None = None,
    given_up: int = 0,
    swallowed_by: Sequence[str] = (),
    repeated: bool = False,
) -> str:
    where = f" ({at})" if at else ""
    more = f" and {plural(others, 'more statement')}" if others else ""
    said = f": {message}" if message else ""
    errors = " or ".join((error, *more_errors))
    failed = f"{statement}{where}{more} failed {plural(count, 'time')} with {errors}{said}"
    calls = plural(given_up, "call")
    if swallowed_by:
        return (
            f"{failed}. {calls} of {listing(swallowed_by)} caught the error and committed nothing after it: "
            "this work is lost. Let the error through, or repeat the transaction until it succeeds. The "
            f"following only makes the error rarer. {explanation or 'Its cause is unknown.'}"
        )
    after = f" {calls} caught the error and committed nothing after it: this work is lost." * bool(given_up)
    kept = (
        "All these calls repeated their work and committed it, so the following only saves time. " * repeated
    )
    return f"{failed}. {kept}{explanation or 'The cause is unknown.'}{after}"


_NO_LOCKS = "Two processes can then write at once, or delete the WAL or journal, and commits are lost."


@grave
def lost_locks(
    *,
    kind: str,
    file: str,
    count: int,
    at: str | None = None,
    holders: int = 0,
    signs: bool = False,
    written: bool | None = None,
    errors: Sequence[str] = (),
) -> str:
    if kind == "two libraries":
        return (
            f"Two SQLite libraries of one process, {at or 'sqlite3 and apsw'}, had the database open: "
            f"closing it in one drops the locks of the other. {_NO_LOCKS} Use one library."
        )
    if kind == "two libraries loaded":
        return (
            f"A process had the database open twice, and two SQLite libraries loaded: {at}. If it uses both, "
            f"closing the database in one drops the locks of the other. {_NO_LOCKS} Use one library."
        )
    if kind == "without locks":
        return (
            f"{plural(count, 'process')} had {file} open without any of SQLite's locks. Other code of the "
            f"process had opened and closed the file, which drops them (POSIX). {_NO_LOCKS} Let nothing but "
            "SQLite open it."
        )
    if kind == "immutable":
        return (
            f"{at or 'A connection'} opens {file} with immutable=1, although it is written: SQLite then "
            "takes no locks and does not read the WAL, so queries return old or damaged rows. Use mode=ro."
        )
    if kind == "no locks":
        seen = f"{plural(count, 'process')} wrote to {file} without any of SQLite's locks"
        cause = f"{at} opens the database without SQLite's locks." if at else f"{seen}."
        return (
            f"{cause} Such processes overwrite each other's changes and damage the file. Remove nolock=1 and "
            "vfs=unix-none; immutable=1 is for files that nobody writes. If locks hang on a network share, "
            "move the database to a local disk."
        )
    if kind == "deleted" and at:
        return (
            f"{at} deleted or moved {file} {plural(count, 'time')}. What other processes have committed "
            "since the last checkpoint, or commit later, can be lost. Never delete or move -wal or -shm: "
            "SQLite recovers and removes them itself."
        )
    if kind == "deleted":
        return _deleted_file(file, count, holders, written, locks_lost=signs)
    return (
        f"{at or 'A library'} opened {file} {plural(count, 'time')} while its process had a connection. "
        f"Closing the file drops SQLite's locks (POSIX). {_NO_LOCKS}{_consequences(errors)} Let nothing but "
        "SQLite open it. A copy made so is no backup: it may be torn, or lack what is only in -wal. Use "
        "Connection.backup() or VACUUM INTO."
    )


def _consequences(errors: Sequence[str]) -> str:
    return f" {listing(errors)} {'follow' if len(errors) > 1 else 'follows'} from it." if errors else ""


def _deleted_file(file: str, users: int, holders: int, written: bool | None, *, locks_lost: bool) -> str:
    """Return a text on a deleted file of the database, such as the WAL, with the probable cause.

    `users` processes had the file open, and `holders` of these had a lock. `written` is whether a process
    wrote commits to the deleted file. `locks_lost` is whether a finding shows that a process lost its locks.
    """
    by_code = "the command, a script or other code deletes or moves it"
    no_locks = "a process had lost its locks, so that SQLite deleted it too early"
    cause = f"Possible causes: {by_code}, or {no_locks}."
    if locks_lost:
        cause = f"Probable cause: {no_locks}."
    elif holders:
        locks = "a process still had its lock" if holders == 1 else f"{digits(holders)} still had locks"
        cause = f"SQLite did not do that, because {locks}: {by_code}."
    loss = {True: " Commits were written into it, and are lost.", None: ""}.get(
        written, " Whether commits were lost was not seen: use --check."
    )
    return (
        f"Deleted while {plural(users, 'process')} had it open: {file}. {cause} Never delete or move "
        "-wal or -shm: SQLite recovers and removes them itself. What these processes commit is invisible "
        f"to all others.{loss}"
    )


@causal
def open_statement(
    *,
    statement: str,
    seconds: float,
    at: str | None = None,
    wal_bytes: int | None = None,
    blob: str | None = None,
) -> str:
    grew = f", and the WAL grew to {size(wal_bytes)}" if wal_bytes else ""
    where = f" ({at})" if at else ""
    reason, cure = "its cursor was not read to the end", "Fetch all rows or close the cursor"
    if blob:
        reason, cure = "its blob handle was not closed", "Close it after use, best by `with`"
    opened = f"{statement}{where} stayed open for {format_duration(seconds)} or longer: {reason}. "
    if blob == "write":
        return (
            f"{opened}Until it is closed, nothing is committed, also without BEGIN, and it holds the write "
            f"lock, so that other connections cannot write. {cure}."
        )
    return (
        f"{opened}It kept a snapshot, so rows are old and checkpoints cannot reset the WAL{grew}. Writes of "
        f"this connection fail at once if another connection has committed. {cure}."
    )


@causal
def long_hold(
    *,
    statement: str,
    count: int,
    seconds: float,
    outside: float,
    at: str | None = None,
    began_at: str | None = None,
    last: str = "",
    work: str = "",
    condition: str = "",
) -> str:
    where = f" ({at})" if at else f" (transaction begun at {began_at})" if began_at else ""
    if work == "unfetched rows":
        return (
            f"{statement}{where} kept the write lock for {format_duration(seconds)} or longer "
            f"({plural(count, 'time')}), because not all its rows were fetched: SQLite commits it only when "
            "they are, or its cursor is closed. Until then no other connection can write, and a crash undoes "
            "it. Call fetchall() at once."
        )
    if work == "checkpoint":
        return (
            f"{statement}{where} took up to {format_duration(seconds)} ({plural(count, 'time')}): it waits "
            "for readers and writers, and no other connection can write meanwhile. Leave checkpoints to "
            "SQLite (wal_autocheckpoint), or use PASSIVE, which does not wait."
        )
    if work:
        scan = f" Its plan has {work}." if work.startswith("SCAN") else ""
        index = {
            "LIKE": "LIKE ignores case, so it uses only an index with COLLATE NOCASE: create this, or use "
            "GLOB.",
            "function": "A condition on a function, such as lower(name), uses only an index on the same "
            "expression: create this, or compare the column itself.",
        }.get(condition, "Create an index for its condition, or change fewer rows at once.")
        return (
            f"{statement}{where} kept the write lock while SQLite computed for up to "
            f"{format_duration(seconds)} ({plural(count, 'time')}).{scan} No other connection could write "
            f"meanwhile. {index}"
        )
    most = f", mostly after {last}" if last else ""
    return (
        f"{statement}{where} held the write lock for up to {format_duration(seconds)} "
        f"({plural(count, 'time')}), {percent(outside)} of it outside of SQLite{most}. No other connection "
        "could write meanwhile: do that work before this statement, or after COMMIT."
    )


_WAL_GROWTH = {
    OVERLAP: "are in the database file, but transactions overlapped without a pause, so the WAL never "
    "started again. If they do so for long in your program, too, leave gaps of some ms, or run "
    "wal_checkpoint(RESTART) with a short timeout.",
    SNAPSHOT: "could be copied into the database file: a transaction or an open cursor kept its snapshot. "
    "End it sooner; sqlstress watch FILE names the process.",
    UNCOPIED: "are in the database file, because automatic checkpoints are off (wal_autocheckpoint 0). Run "
    "wal_checkpoint more often.",
}


def wal_growth(
    *,
    where: str,
    kind: str,
    wal_bytes: int,
    frames: int,
    checkpointed: float,
    live_frames: int,
    end_bytes: int,
) -> str:
    grew = f"The WAL grew to {size(wal_bytes)} ({plural(frames, 'frame')}) at {where}."
    if kind in _WAL_GROWTH:
        return f"{grew} Of these, {percent(checkpointed)} {_WAL_GROWTH[kind]}"
    return (
        f"{grew} Readers or a large transaction caused it, and have ended: at the end "
        f"{plural(live_frames, 'frame')} of the file's {size(end_bytes)} were in use. The space is reused; "
        "wal_checkpoint(TRUNCATE) or journal_size_limit shrinks the file."
    )


@causal
def wal_hook(*, at: str, frames: int) -> str:
    return (
        f"The WAL hook{f' set at {at}' if at else ''} replaces SQLite's automatic checkpoints, and no "
        f"checkpoint ran: the WAL had up to {plural(frames, 'frame')}, and grows on. Call wal_checkpoint in "
        "the hook, such as from 1,000 frames on, or leave out the hook."
    )


@grave
def in_memory(*, name: str, at: str | None = None, cache: bool = False) -> str:
    where = f" ({at})" if at else ""
    shared = " cache=shared shares it only within a process." if cache else ""
    return (
        f"The database {name}{where} is in memory: each process has its own, and no check reads it.{shared} "
        "If the processes need common data, use a file."
    )


@causal
def backup_in_steps(*, count: int, restarts: int, seconds: float, at: str | None = None) -> str:
    return (
        f"The backup in steps{f' at {at}' if at else ''} began again up to {plural(restarts, 'time')} and "
        f"took {format_duration(seconds)} ({plural(count, 'backup')}): after each write of another "
        "connection the next step copies from the first page again, perhaps without end. Leave out pages, "
        "or use VACUUM INTO: a single step ends, and in WAL mode it blocks no other connection."
    )


@causal
def unclosed(*, count: int, at: str | None = None) -> str:
    opened = f" opened at {at}" if at else ""
    return (
        f"A thread had {plural(count, 'connection')}{opened} open at the end: calls open connections and do "
        "not close them. Each takes up to 3 file descriptors, until opening a file fails. Close a "
        "connection, or give it back, on every path: also before an early return, and after an exception."
    )


@causal
def schema_change(*, statement: str, message: str, at: str | None = None) -> str:
    if "no such" not in message:
        return (
            f"{statement}{f' ({at})' if at else ''} changed the schema while another process made the same "
            f'change: "{message}". Use IF NOT EXISTS, or BEGIN IMMEDIATE before the code looks at the schema.'
        )
    return (
        f"{statement}{f' ({at})' if at else ''} changed the schema in a transaction of its own. Before the "
        f'next statement, other processes saw a half change: "{message}". Python begins no transaction '
        "before CREATE, DROP or ALTER: BEGIN IMMEDIATE first, or use DELETE and INSERT instead."
    )


@grave
def split_transaction(*, at: str, count: int, began_at: str | None = None, way: str = "script") -> str:
    transaction = f"the transaction begun at {began_at}" if began_at else "the open transaction"
    if way == "block":
        block = f"`with connection` at {at}" if at else "An inner `with connection`"
        return (
            f"{block} committed {transaction} ({plural(count, 'time')}), although an outer `with connection` "
            "went on: only the outermost may commit. A later error undoes only the rest. Use a SAVEPOINT, or "
            "leave the commit to the caller."
        )
    if way == "release":
        savepoint = f"the SAVEPOINT of {began_at}" if began_at else "a SAVEPOINT"
        rollback = f"the ROLLBACK at {at}" if at else "the later ROLLBACK"
        return (
            f"RELEASE committed {savepoint}, because no BEGIN came before: {rollback} did not undo it "
            f"({plural(count, 'time')}). BEGIN first. In SQLAlchemy, begin_nested needs "
            'isolation_level=None, and an event "begin" with BEGIN.'
        )
    script = f"executescript ({at})" if at else "executescript"
    return (
        f"{script} committed {transaction} before its end ({plural(count, 'time')}): the transaction is two. "
        "Run the statements with execute, or call executescript outside of a transaction."
    )


@grave
def left_open(
    *,
    call: str,
    count: int,
    began: str | None = None,
    at: str | None = None,
    error: str | None = None,
    written: bool = False,
    tasks: bool = False,
    closed: bool = False,
) -> str:
    began_at = f" at {at}" if at else ""
    beginning = f"begun by {began}{began_at}" if began else ""
    commit = f"COMMIT had returned {error}" if error else ""
    details = "; ".join(filter(None, (beginning, commit)))
    if closed:
        return (
            f"{call} closed its connection {plural(count, 'time')} in a transaction that had changed rows"
            f"{f' ({details})' if details else ''}. SQLite rolled it back, so these changes are lost: COMMIT "
            "before close. closing(connection) does not commit, nor does SQLAlchemy's engine.connect() or "
            "Session."
        )
    lock = ", and it keeps the write lock, for which all other writers wait"
    snapshot = ", and its snapshot shows old data and lets the WAL grow"
    effect = lock if written else snapshot
    ends = "COMMIT on every path, or ROLLBACK after an error"
    if began == "SAVEPOINT":
        ends = "RELEASE it on every path, also after ROLLBACK TO"
    if tasks:
        ends = (
            "ROLLBACK on BaseException (try/finally or async with), because a task that is cancelled, as by "
            "wait_for or a timeout, reaches no COMMIT. Otherwise the COMMIT of a later task also commits it"
        )
    return (
        f"{call} left a transaction open{f' ({details})' if details else ''}, and {plural(count, 'call')} "
        f"returned within it. Nothing in it is durable before it commits{effect}: {ends}."
    )
