"""Sentences that several experiments share, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding, aside, grave, texts, written
from sqlstress.analysis.wording import (
    between,
    capital,
    duration,
    estimate,
    listing,
    percent,
    processes,
    signed,
    times,
    with_interval,
)
from sqlstress.statistics import units
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import format_duration, format_ms, plural, rounded, whole


@grave
def data_wrong(*, where: str, checks: Sequence[Finding]) -> str:
    return f"FAILED at {where}: {'; '.join(texts(checks))}."


def check_failed(
    *,
    name: str,
    problems: int | None = None,
    checked: int | None = None,
    failed: int | None = None,
    passes: int | None = None,
    examples: Sequence[str] | None = None,
) -> str:
    checked_part = f" of {whole(checked)}" if checked is not None else ""
    problems_part = f", {whole(problems)}{checked_part} wrong" if problems is not None else ""
    failed_part = (
        (f", in {whole(failed)} of {plural(passes, 'pass')}")
        if failed is not None and passes is not None
        else ""
    )
    examples_part = f" ({'; '.join(examples)})" if examples else ""
    return f"{name}{problems_part}{failed_part}{examples_part}"


@grave
def data_wrong_elsewhere(*, where: str) -> str:
    return f"Also FAILED at {where}; the JSON report has the counter-examples."


def counterexamples(*, name: str, examples: Sequence[str]) -> str:
    return f"{name}: {'; '.join(examples)}."


@grave
def study_wrong(*, example: str) -> str:
    return f"FAILED: the data is wrong: {example}."


@grave
def ended_early(*, reason: str, rounds: str | None = None) -> str:
    rounds_part = f" {rounds}" if rounds else ""
    return f"Ended {'after' if rounds else 'early'}{rounds_part}: {reason}."


@grave
def case_failed(*, where: str, reason: str) -> str:
    return f"Not measured at {where}: {reason}."


@grave
def case_incomplete(*, where: str, reason: str) -> str:
    return f"Only partly measured at {where}: {reason}."


@grave
def interrupted(*, progress: str | None = None) -> str:
    progress_part = f" after {progress}" if progress else ""
    return f"Interrupted{progress_part}. The results so far are shown."


@grave
def interrupted_trials(*, trials: int, planned: int) -> str:
    return f"Interrupted after {whole(trials)} of {plural(planned, 'trial')}."


@grave
def interrupted_cases(*, trials: int, cases: int, planned: int) -> str:
    return (
        f"Interrupted: {plural(trials, 'trial')} of {whole(cases)} of {plural(planned, 'planned case')} "
        "are shown."
    )


def stopped_at_wrong_data(*, trials: int, planned: int, left_out: str | None = None) -> str:
    left_out_part = f"; not measured: {left_out}" if left_out else ""
    return (
        f"Stopped at the first wrong data, after {whole(trials)} of "
        f"{plural(planned, 'trial')}{left_out_part}. Use --keep-going to measure the rest."
    )


def highest(
    *,
    rate: float,
    unit: str,
    where: str,
    repeat: int | None = None,
    enough: int | None = None,
) -> str:
    repeat_part = f"let all {plural(repeat, 'pass')} finish" if repeat is not None else ""
    enough_part = f"use --repeat {whole(enough)} or more" if enough is not None else ""
    return (
        f"Highest: {rounded(rate)} {unit} per second with {where}. Too few trials to tell which is best: "
        f"{repeat_part}{enough_part}."
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
    most_part = f" to {rounded(most)}" if most is not None else ""
    return (
        f"{'No clear best' if unclear else 'Best'}: {'about ' if about else ''}{rounded(rate)}{most_part} "
        f"{unit} per second with {where}{' (about equal)' if equal else ''}."
    )


def still_rising(*, most: int, where: str | None = None) -> str:
    where_part = f"On {where}, " if where else ""
    text = (
        f"{where_part}throughput still rises at {processes(most)}, the most measured: try more with "
        "--concurrency."
    )
    return capital(text)


def plateau(
    *,
    enough: int,
    share: float,
    where: str | None = None,
    most: int | None = None,
    fall: Ratio | None = None,
    unclear: int | None = None,
) -> str:
    where_part = f"On {where}, " if where else ""
    most_part = (
        (f", and {processes(most)} reach only {with_interval(fall, 'the best')}")
        if most is not None and fall is not None
        else ""
    )
    unclear_part = (
        (f". Cannot tell whether throughput rises beyond {processes(unclear)}") if unclear is not None else ""
    )
    text = (
        f"{where_part}any gain beyond {processes(enough)} is below {percent(share)}{most_part}{unclear_part}."
    )
    return capital(text)


def scaling_unclear(
    *,
    first: int,
    noise: Finding,
    where: str | None = None,
    less: int | None = None,
    anything: bool = False,
    most: float | None = None,
) -> str:
    where_part = f"On {where}, " if where else ""
    less_part = f"throughput rises beyond {processes(less)}; " if less is not None else ""
    most_part = f" is at most {percent(most)}" if most is not None else ""
    text = (
        f"{where_part}{less_part}{'cannot tell whether throughput rises' if anything else 'any gain'} "
        f"beyond {processes(first)}{most_part}. {capital(noise.text)}."
    )
    return capital(text)


def layouts(*, base: str, others: Sequence[Finding]) -> str:
    return f"Compared with {base}: {listing(texts(others))}."


def layout_gave(*, layout: str, ratio: Ratio, processes: int) -> str:
    return f"{layout} gave {with_interval(ratio, 'as much')} at {wording.processes(processes)}"


def layout_unclear(*, layout: str, processes: int, ratio: Ratio) -> str:
    return (
        f"cannot tell whether {layout} gave more at {wording.processes(processes)} ({between(ratio)} times)"
    )


def layout_waits(
    *,
    layout: str,
    base: str,
    processes: int,
    longer: bool = False,
    wait_before_ns: float | None = None,
    wait_ns: float | None = None,
    both: bool = False,
    fairer: bool = False,
    fairness_before: float | None = None,
    fairness: float | None = None,
) -> str:
    wait_before_ns_part = (
        (
            f" the longest wait {'rose' if longer else 'fell'} from {duration(wait_before_ns)} to "
            f"{duration(wait_ns)}"
        )
        if wait_before_ns is not None and wait_ns is not None
        else ""
    )
    fairness_before_part = (
        (
            f"{'. Fairness' if both else ' fairness'} {'rose' if fairer else 'fell'} from "
            f"{rounded(fairness_before, 2)} to {rounded(fairness, 2)}"
        )
        if fairness_before is not None and fairness is not None
        else ""
    )
    return (
        f"With {layout} instead of {base} at {wording.processes(processes)},{wait_before_ns_part}"
        f"{fairness_before_part}."
    )


def waits(
    *,
    least: int,
    processes: int,
    longer: bool = False,
    wait_before_ns: float | None = None,
    wait_ns: float | None = None,
    both: bool = False,
    fairer: bool = False,
    fairness_before: float | None = None,
    fairness: float | None = None,
) -> str:
    wait_before_ns_part = (
        (
            f" the longest wait {'rose' if longer else 'fell'} from {duration(wait_before_ns)} to "
            f"{duration(wait_ns)}"
        )
        if wait_before_ns is not None and wait_ns is not None
        else ""
    )
    fairness_before_part = (
        (
            f"{'. Fairness' if both else ' fairness'} {'rose' if fairer else 'fell'} from "
            f"{rounded(fairness_before, 2)} to {rounded(fairness, 2)}"
        )
        if fairness_before is not None and fairness is not None
        else ""
    )
    return (
        f"From {wording.processes(least)} to {whole(processes)},{wait_before_ns_part}{fairness_before_part}."
    )


def starvation(
    *,
    where: str,
    fairness: float | None = None,
    both: bool = False,
    longest_ns: float | None = None,
    remedy: Finding | None = None,
) -> str:
    fairness_part = (
        (f"shares were uneven (fairness down to {rounded(fairness, 2)}; 1 is equal)")
        if fairness is not None
        else ""
    )
    longest_ns_part = f"the longest wait was {duration(longest_ns)}" if longest_ns is not None else ""
    remedy_part = f" {remedy.text}" if remedy else ""
    return f"Starvation at {where}: {fairness_part}{' and ' if both else ''}{longest_ns_part}.{remedy_part}"


def too_few_trials(*, repeat: int | None = None, enough: int | None = None) -> str:
    repeat_part = f"let all {plural(repeat, 'pass')} finish" if repeat is not None else ""
    enough_part = f"use --repeat {whole(enough)} or more" if enough is not None else ""
    return f"Too few trials to tell a difference from noise: {repeat_part}{enough_part}."


def noise(*, passes: int, share: float, too: int | None = None, enough: int | None = None) -> str:
    too_part = f", nor could {whole(too)}" if too is not None else ""
    enough_part = f": use --repeat {whole(enough)}" if enough is not None else ""
    return f"{plural(passes, 'pass')} cannot show a difference of {percent(share)}{too_part}{enough_part}"


def cannot_tell(*, too_few: Finding | None = None, noise: Finding | None = None) -> str:
    too_few_part = f"{too_few.text}" if too_few else ""
    noise_part = f'Reason for "cannot tell": {noise.text}.' if noise else ""
    return f"{too_few_part}{noise_part}"


def not_comparable(
    *,
    unknown: Sequence[str] | None = None,
    worths: Sequence[Finding] | None = None,
    can_be_set: bool = False,
) -> str:
    unknown_part = f": the durability of {listing(unknown)} is not known" if unknown else ""
    worths_part = f": commits differ in durability ({'; '.join(texts(worths))})" if worths else ""
    can_be_set_text = " Choose a --synchronous that gives all the same durability." if can_be_set else ""
    return f"Not comparable{unknown_part}{worths_part}.{can_be_set_text}"


def commit_worth(*, sides: Sequence[str], worth: str) -> str:
    return f"{listing(sides)}: {'' if worth else 'not known'}{worth}"


def leads(
    *,
    unclear: Sequence[str] | None = None,
    too_few: Finding | None = None,
    worth: str | None = None,
    places: Sequence[Finding] | None = None,
    noise: Finding | None = None,
) -> str:
    unclear_part = (
        (f"Cannot tell which of {listing(unclear)} leads. {too_few.text}") if unclear and too_few else ""
    )
    worth_part = f"With {worth}: {'; '.join(texts(places))}." if worth and places else ""
    noise_part = f" {capital(noise.text)}." if noise else ""
    return f"{unclear_part}{worth_part}{noise_part}"


def side_leads(
    *,
    side: str,
    where: str,
    low: float | None = None,
    high: float | None = None,
    several: bool = False,
    other: str | None = None,
) -> str:
    other_part = f"{other}" if other else ""
    low_part = (
        (f" ({rounded(low, 2)} to {rounded(high, 2)} times {'the next' if several else ''}{other_part})")
        if low is not None and high is not None
        else ""
    )
    return f"{side} leads with {where}{low_part}"


def sides_equal(*, sides: Sequence[str], where: str, lead: bool = False) -> str:
    return f"{listing(sides)} are about equal{' and lead' if lead else ''} with {where}"


def sides_unclear(*, sides: Sequence[str], where: str) -> str:
    return f"cannot tell which of {listing(sides)} leads with {where}"


def answer(
    *,
    setting: str,
    values: Sequence[Finding],
    unit: str,
    places: str | None = None,
    too_few: Finding | None = None,
    noise: Finding | None = None,
) -> str:
    places_part = f", as the mean over {places}" if places else ""
    too_few_part = f" {too_few.text}" if too_few else ""
    noise_part = f" {noise.text}." if noise else ""
    return (
        f"{setting}: {'; '.join(texts(values))}. Compared in {unit} per "
        f"second{places_part}.{too_few_part}{noise_part}"
    )


def value_gave(*, value: str, times: float, base: str, ratio: Ratio | None = None) -> str:
    ratio_part = f" ({between(ratio)})" if ratio is not None else ""
    return f"{value} reached {wording.times(times)} {base}{ratio_part}"


def value_equal(*, value: str, base: str, ratio: Ratio) -> str:
    return f"{value} is about equal to {base} ({between(ratio)} times)"


def value_unclear(*, value: str, base: str, ratio: Ratio) -> str:
    return f"cannot tell whether {value} differs from {base} ({between(ratio)} times)"


def answer_by_place(*, values: Sequence[Finding]) -> str:
    return f"{'; '.join(texts(values))}."


def value_by_place(*, value: str, most: float, where: str, least: float, elsewhere: str) -> str:
    return f"{value} reached {times(most)} at {where} but {times(least)} at {elsewhere}"


def proof_ok(*, where: str, checks: Sequence[str], note: str | None = None) -> str:
    note_part = f": {note}" if note else ""
    return f"Partly verified at {where} ({listing(checks)}){note_part}."


@grave
def proof_unknown(*, where: str, checks: Sequence[str], note: str | None = None) -> str:
    note_part = f": {note}" if note else ""
    return f"Could not be verified at {where} ({listing(checks)}){note_part}."


def not_steady(*, where: str, change: float) -> str:
    return (
        f"Not steady at {where}: the second half of the window was up to {wording.change(change, 'than')} "
        "the first. Use a longer --duration."
    )


@aside
def spread(*, share: float, where: str) -> str:
    return f"Trials of the same case differ by up to {percent(share)} ({where})."


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


def others(
    *,
    stolen: bool = False,
    processors: float | None = None,
    processors_where: Finding | None = None,
    disk: float | None = None,
    disk_where: Finding | None = None,
) -> str:
    processors_part = (
        (
            f"{'Other guests of the hypervisor' if stolen else 'Other programs'} took up to "
            f"{percent(processors)} of the processors {processors_where.text}. "
        )
        if processors is not None and processors_where
        else ""
    )
    disk_part = (
        (f"Other programs kept the disk busy up to {percent(disk)} of the time {disk_where.text}. ")
        if disk is not None and disk_where
        else ""
    )
    return f"{processors_part}{disk_part}Measure again on a quieter machine."


def throttled(*, where: Finding) -> str:
    return f"Processors were slowed down for heat {where.text}: let them cool, then go on."


def quota_throttled(*, cores: str, share: float, where: Finding, stopped_ns: float | None = None) -> str:
    stopped_ns_part = f" (for {duration(stopped_ns)} in all)" if stopped_ns is not None else ""
    return (
        f"The CPU quota of {cores} cores stopped the processes in up to {percent(share)} of its "
        f"periods{stopped_ns_part} {where.text}. Rates and waits are limited by the quota. Raise it, or "
        "use fewer processes."
    )


def sync_changed(*, before_ns: float, after_ns: float, times: float, slower: bool = False) -> str:
    return (
        f"A sync took {format_ms(before_ns)} ms before and {format_ms(after_ns)} ms after the measurement "
        f"(two samples each): the disk became at least {wording.times(times)} as "
        f"{'slow' if slower else 'fast'}. These figures mix both speeds. Measure again before you compare "
        "them with another run."
    )


def throughout() -> str:
    return "throughout"


def in_some_cases(*, cases: int, measured: int) -> str:
    return f"in {whole(cases)} of {plural(measured, 'case')}"


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


def p99_level(
    *,
    where: str,
    base_ns: float,
    base_rate: int,
    rate: int | None = None,
    share: float | None = None,
    unclear_rate: int | None = None,
    noise: Finding | None = None,
) -> str:
    rate_part = (
        (f"Up to {whole(rate)}/s it differs by less than {percent(share)}")
        if rate is not None and share is not None
        else ""
    )
    unclear_rate_part = (
        (f"Cannot tell whether it is higher at rates up to {whole(unclear_rate)}/s: {noise.text}")
        if unclear_rate is not None and noise
        else ""
    )
    return (
        f"With {where}, p99 was {duration(base_ns)} at {whole(base_rate)}/s. {rate_part}{unclear_rate_part}."
    )


def p99_rises(*, where: str, base_ns: float, base_rate: int, ratio: Ratio, rate: int) -> str:
    return (
        f"With {where}, p99 was {duration(base_ns)} at {whole(base_rate)}/s and {estimate(ratio)} that at "
        f"{whole(rate)}/s ({between(ratio)})."
    )


def harness_late(*, where: str, late_ns: float, p99_ns: float, most: str | None = None) -> str:
    most_part = f" ({most})" if most else ""
    return (
        f"At {where}, sqlstress itself started 1% of the operations at least {duration(late_ns)} late. "
        "The latencies include this delay, which the database did not cause: p99 is "
        f"{duration(p99_ns)}{most_part}."
    )


@aside
def polling_cost(*, share: float, processors: float, where: str) -> str:
    return (
        f"Polling the clock took up to {percent(share)} of each process's time, {rounded(processors, 2)} "
        f"processors in all (at {where}). It lets operations start on time."
    )


def try_(
    *,
    ways: Sequence[Finding],
    names: Sequence[str] | None = None,
    nothing: float | None = None,
    share: float | None = None,
) -> str:
    return f"Try {listing(texts(ways), 'or')}."


def way_files(*, files: int) -> str:
    return f"more buckets (--buckets {files})"


def way_processes() -> str:
    return "fewer processes"


def way_quota() -> str:
    return "a higher CPU quota"


def way_timeout() -> str:
    return "a longer --busy-timeout"


def shorter_transactions(*, longest_ns: float) -> str:
    return f"One transaction kept the write lock for {duration(longest_ns)}: try shorter transactions."


def read_outside(
    *,
    transaction: str,
    table: str,
    first: str,
    then: str,
    failed: bool = False,
    held: bool = False,
    first_at: str | None = None,
    then_at: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    return (
        f"{'Probable cause' if failed else 'Suspicion'}{', although every check passed,' if held else ''} "
        f"of a lost update: {transaction} reads {table} outside of the transaction that writes it. First "
        f"{first}{first_at_part}, then {then}{then_at_part}. Another process can write in between. Read "
        "after BEGIN IMMEDIATE, or let one statement read and write."
    )


def copy_of_read_outside(
    *,
    transaction: str,
    table: str,
    first: str,
    then: str,
    failed: bool = False,
    held: bool = False,
    first_at: str | None = None,
    then_at: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    return (
        f"{'Probable cause' if failed else 'Suspicion'}{', although every check passed,' if held else ''} "
        f"of a stale copy: {transaction} writes {table} from what it has read outside of that "
        f"transaction. First {first}{first_at_part}, then {then}{then_at_part}. Another process can "
        "change the source in between. Read it after BEGIN IMMEDIATE."
    )


def guarded_by_stale_read(
    *,
    transaction: str,
    table: str,
    first: str,
    then: str,
    failed: bool = False,
    held: bool = False,
    first_at: str | None = None,
    then_at: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    return (
        f"{'Probable cause' if failed else 'Suspicion'}{', although every check passed,' if held else ''} "
        f"of a check that no longer holds: {transaction} checks what it has read of {table} outside of "
        f"the transaction that writes it. First {first}{first_at_part}, then {then}{then_at_part}. "
        "Another process can write in between. Repeat the condition in the WHERE of the write and look "
        "at its row count, or read after BEGIN IMMEDIATE."
    )


def maybe_guarded_by_stale_read(
    *,
    transaction: str,
    table: str,
    first: str,
    then: str,
    first_at: str | None = None,
    then_at: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    return (
        f"{transaction} reads {table} outside of the transaction that writes it. First "
        f"{first}{first_at_part}, then {then}{then_at_part}. SQLite computes the new value, so no update "
        "is lost. But if the code checks first what it has read, such as a limit, repeat the condition "
        "in the WHERE of the write."
    )


def connection_mixed(
    *,
    transaction: str,
    first: str,
    then: str,
    failed: bool = False,
    held: bool = False,
    first_at: str | None = None,
    then_at: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    return (
        f"{'Probable cause' if failed else 'Suspicion'}{', although every check passed,' if held else ''} "
        f"of half transactions: threads or tasks of {transaction} share a connection, and one writes in "
        f"the transaction of another. First {first}{first_at_part}, then {then}{then_at_part}. Use a lock "
        "for each transaction, or a connection for each task."
    )


def connection_forked(
    *,
    transaction: str,
    failed: bool = False,
    held: bool = False,
    first: str | None = None,
    first_at: str | None = None,
) -> str:
    first_part = f": {first}" if first else ""
    first_at_part = f" ({first_at})" if first_at else ""
    return (
        f"{'Probable cause' if failed else 'Suspicion'}{', although every check passed,' if held else ''} "
        f"of corruption: {transaction} uses a connection in a process that was forked after it was "
        f"opened{first_part}{first_at_part}. Open a connection in each process."
    )


def not_rehearsed(*, why: str, transactions: Sequence[str] | None = None) -> str:
    transactions_part = f" of {listing(transactions)}" if transactions else ""
    return f"The statements{transactions_part} were not examined for suspicions: {why}."


def suspicions_more(*, count: int) -> str:
    return f"The JSON report has {plural(count, 'more suspicion')}."


def deferred_upgrade(
    *,
    first: str | None = None,
    first_at: str | None = None,
    then: str | None = None,
    then_at: str | None = None,
    failed: bool | None = None,
    held: bool | None = None,
    table: str | None = None,
    transaction: str | None = None,
) -> str:
    first_at_part = f" ({first_at})" if first_at else ""
    then_at_part = f" ({then_at})" if then_at else ""
    first_part = f" First {first}{first_at_part}, then {then}{then_at_part}." if first and then else ""
    return (
        f"Transactions begin DEFERRED, read, and then write.{first_part} If another process wrote "
        'meanwhile, SQLite returns "database is locked" at once, whatever the timeout is. Use BEGIN '
        "IMMEDIATE."
    )


def read_committed() -> str:
    return (
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        "between. Use SELECT ... FOR UPDATE to wait for them, or --isolation repeatable-read or "
        "serializable to refuse them."
    )


def transactions_refused(*, where: str, count: int, share: float, most: str | None = None) -> str:
    most_part = f" (at {most})" if most else ""
    return (
        f"At {where}, {plural(count, 'transaction')} gave up. That is "
        f"{'up to ' if most else ''}{percent(share)} of all{most_part}. The server refused them because "
        "of concurrent transactions. The figures leave them out; an application must retry them "
        "(--max-tries)."
    )


def refused(*, where: str, refused: int, locked: int) -> str:
    return (
        f"Refused by the server at {where}: {whole(refused)} by a serialization failure, {whole(locked)} "
        "by a deadlock or an unavailable lock."
    )


def held_for(*, ns: float) -> str:
    return f"{duration(ns)}"


def held_below(*, ns: float) -> str:
    return f"{duration(ns)}"


def long_write(*, process: Finding, longest_ns: float, lasts: bool = False) -> str:
    text = (
        f"{process.text} {'has kept' if lasts else 'kept'} the write lock for {duration(longest_ns)} in "
        'one transaction. Writers with a shorter busy timeout get "database is locked".'
    )
    return capital(text)


def lock_holder(*, where: str, program: str) -> str:
    return f"at {where}, {program}"


def lock_not_seen(*, where: str, samples: int) -> str:
    return (
        f"Nobody was seen with the write lock at {where}, in {plural(samples, 'sample')}: it was held too "
        "briefly, or not at all."
    )


def lock_watch_ended(*, where: str, reason: str) -> str:
    return f"The write lock was not watched to the end at {where}: {reason}."


@grave
def transactions_given_up(
    *,
    count: int,
    where: str,
    share: float,
    how: Finding | None = None,
    most: str | None = None,
    shares: Sequence[Finding] | None = None,
    cure: Finding | None = None,
) -> str:
    how_part = f", {how.text}" if how else ""
    most_part = f" (at {most})" if most else ""
    shares_part = f"; by transaction: {listing(texts(shares))}" if shares else ""
    cure_part = f" {cure.text}" if cure else ""
    return (
        f"{plural(count, 'transaction')} failed with "
        f'"database is locked" at {where}{how_part}. That is '
        f"{'up to ' if most else ''}{percent(share)} of all{most_part}{shares_part}. The figures leave "
        f"them out.{cure_part}"
    )


def failed_at_once(*, median_ns: float, longest_ns: float, timeout: str) -> str:
    return (
        f"at once (median {duration(median_ns)}, longest {duration(longest_ns)}; the timeout of {timeout} "
        "was not waited for)"
    )


def failed_after_timeout(*, timeout: str, median_ns: float, longest_ns: float) -> str:
    return (
        f"after the whole timeout of {timeout} (median {duration(median_ns)}, longest {duration(longest_ns)})"
    )


def failed_without_timeout(*, median_ns: float, longest_ns: float) -> str:
    return f"at once, without a busy timeout (median {duration(median_ns)}, longest {duration(longest_ns)})"


def failed_before_timeout(*, timeout: str, median_ns: float, longest_ns: float) -> str:
    return (
        f"before the timeout of {timeout} ended (median {duration(median_ns)}, longest "
        f"{duration(longest_ns)})"
    )


def failed_mixed(*, whole: int, count: int, timeout: str, median_ns: float, longest_ns: float) -> str:
    return (
        f"{units.whole(whole)} of {units.whole(count)} after the whole timeout of {timeout}, the others "
        f"earlier (median {duration(median_ns)}, longest {duration(longest_ns)})"
    )


def failed_after(*, median_ns: float, longest_ns: float) -> str:
    return f"after {duration(median_ns)} (median; longest {duration(longest_ns)})"


def kind_share(*, kind: str, share: float) -> str:
    return f"{kind} {percent(share)}"


@grave
def too_many_failed(*, where: str, share: float, most: str, several: bool = False) -> str:
    return (
        f"At {where}, {'up to ' if several else ''}{percent(share)} of the operations failed, and at most "
        f"{most} may (--max-failed). {'These rows are' if several else 'This row is'} not compared with "
        "others."
    )


def cure_timeout() -> str:
    return "Try a longer timeout, or find what holds the lock for so long."


def cure_set_timeout() -> str:
    return "Set a busy timeout on every connection."


def cure_immediate() -> str:
    return "A transaction reads before it writes, so SQLite does not wait: use BEGIN IMMEDIATE."


def cure_no_timeout() -> str:
    return "A longer timeout does not help."


def transactions_snapshot(*, where: str, count: int) -> str:
    return (
        f"BUSY_SNAPSHOT at {where}: {whole(count)}. A transaction that has read cannot wait for its turn "
        "to write: use BEGIN IMMEDIATE, or retry the whole transaction."
    )


def compared(*, claims: Sequence[Finding]) -> str:
    return f"{' '.join(texts(claims))}"


def compared_different(
    *,
    b: str,
    ratios: Sequence[Finding],
    several: bool = False,
    low: float | None = None,
    high: float | None = None,
    a: str | None = None,
) -> str:
    low_part = (
        (f" (95% interval{'s from' if several else ''} {rounded(low, 2)} to {times(high)})")
        if low is not None and high is not None
        else ""
    )
    return f"{b} reached {listing(texts(ratios))}{low_part}."


def compared_equal(
    *,
    b: str,
    a: str,
    where: Sequence[Finding],
    several: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> str:
    low_part = (
        (f" (95% interval{'s from' if several else ''} {rounded(low, 2)} to {times(high)})")
        if low is not None and high is not None
        else ""
    )
    return f"{b} and {a} are about equal {listing(texts(where))}{low_part}."


def compared_unclear(
    *,
    b: str,
    a: str,
    where: Sequence[Finding],
    several: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> str:
    low_part = (
        (f" (95% interval{'s from' if several else ''} {rounded(low, 2)} to {times(high)})")
        if low is not None and high is not None
        else ""
    )
    return f"Cannot tell {b} from {a} {listing(texts(where))}{low_part}: measure longer or use more trials."


def compared_chance(*, b: str, ratios: Sequence[Finding], repeat: int, a: str | None = None) -> str:
    return f"{b} showed {listing(texts(ratios))}. That may be chance: use --repeat {whole(repeat)} for both."


def at(*, place: str) -> str:
    return f"at {place}"


def in_cases(*, cases: int) -> str:
    return f"in {plural(cases, 'case')}"


def times_of(*, times: float, where: str, of: str | None = None, unit: str | None = None) -> str:
    of_part = f" {of}'s" if of else ""
    unit_part = f" {unit}" if unit else ""
    return f"{wording.times(times)}{of_part}{unit_part} at {where}"


def times_over(*, low: float, high: float, of: str, unit: str, cases: int) -> str:
    return f"{rounded(low, 2)} to {times(high)} {of}'s {unit}, over {plural(cases, 'case')}"


def reports_not_comparable(
    *,
    reasons: Sequence[str],
    b: str | None = None,
    ratios: Sequence[Finding] | None = None,
    where: str | None = None,
    a: str | None = None,
    a_rate: float | None = None,
    a_unit: str | None = None,
    b_rates: Finding | None = None,
) -> str:
    b_part = f"{b} shows {listing(texts(ratios))}" if b and ratios else ""
    a_unit_part = f" {a_unit}" if a_unit else ""
    where_part = (
        (f"At {where}, {a} shows {rounded(a_rate)}{a_unit_part} and {b_rates.text}")
        if where and a and a_rate is not None and b_rates
        else ""
    )
    return f"{b_part}{where_part}. Do not compare their speed: {listing(reasons)}."


def rates(*, letter: str, rate: float, unit: str) -> str:
    return f"{letter} {rounded(rate)} {unit}"


def shape(*, where: str, totals: Sequence[Finding], growths: Sequence[Finding]) -> str:
    return (
        f"From 1 process to {where}, throughput changed by a factor of {listing(texts(totals))}. "
        f"{capital(written(growths))}."
    )


def total_in(*, times: float, of: str) -> str:
    return f"{rounded(times, 2)} in {of}"


def grew_otherwise(*, b: Sequence[str], a: str) -> str:
    return f"{listing(b)} grew differently from {a}"


def grew_alike(*, b: Sequence[str], a: str) -> str:
    return f"{listing(b)} grew about as much as {a}"


def growth_unclear(*, b: Sequence[str], a: str) -> str:
    return f"cannot tell whether {listing(b)} grew differently from {a} (the trials differ too much)"


def growth_too_few(*, b: Sequence[str], a: str) -> str:
    return f"too few trials to tell whether {listing(b)} grew differently from {a}"


@grave
def arm_failed(*, arm: str, share: float, why: str) -> str:
    return f"In {arm}, {percent(share)} of the operations failed: {why}."


def ab_faster(
    *,
    metric: str,
    ratio: float,
    pairs: int,
    where: str | None = None,
    low: float | None = None,
    high: float | None = None,
) -> str:
    where_part = f"{where} " if where else ""
    low_part = f"{signed(low)} to {signed(high)}, " if low is not None and high is not None else ""
    return f"{where_part}B is faster: {metric} {signed(ratio)} ({low_part}{plural(pairs, 'pair')})"


def ab_slower(
    *,
    metric: str,
    ratio: float,
    pairs: int,
    where: str | None = None,
    low: float | None = None,
    high: float | None = None,
) -> str:
    where_part = f"{where} " if where else ""
    low_part = f"{signed(low)} to {signed(high)}, " if low is not None and high is not None else ""
    return f"{where_part}B is slower: {metric} {signed(ratio)} ({low_part}{plural(pairs, 'pair')})"


def ab_unclear(
    *,
    metric: str,
    ratio: float,
    pairs: int,
    where: str | None = None,
    low: float | None = None,
    high: float | None = None,
) -> str:
    where_part = f" {where}" if where else ""
    low_part = f"{signed(low)} to {signed(high)}, " if low is not None and high is not None else ""
    return (
        f"cannot tell whether B is faster{where_part}: {metric} {signed(ratio)} "
        f"({low_part}{plural(pairs, 'pair')})"
    )


def ab_pass(
    *,
    noun: str,
    allowed: float,
    change: Finding,
    cells: int | None = None,
    open: bool = False,
) -> str:
    cells_part = f" in the mean of {plural(cells, 'cell')}" if cells is not None else ""
    return (
        f"PASS: no {noun} of more than {percent(allowed)}{cells_part}. "
        f"{capital(change.text)}.{' Use a smaller --max-drop to measure longer.' if open else ''}"
    )


def ab_pass_by_estimate(*, possible: str, change: Finding, cells: int | None = None) -> str:
    cells_part = f" in the mean of {plural(cells, 'cell')}" if cells is not None else ""
    return f"PASS, but only by its estimate: {possible}{cells_part}. {capital(change.text)}."


def ab_fail(*, changes: Sequence[Finding], allowed: float) -> str:
    return (
        f"FAIL: {'; '.join(texts(changes))}. At most {percent(allowed)} is allowed: find out why before "
        "you use B."
    )


def ab_wrong(*, reason: str) -> str:
    return f"FAIL: {reason}. Find out why before you use any figure."


def ab_not_comparable(*, arms: Sequence[Finding]) -> str:
    return f"Not comparable: {'; '.join(texts(arms))}."


def arm_failed_too_often(*, arm: str, share: float, where: str, most: float, why: str) -> str:
    return (
        f"in {arm}, {percent(share)} of the operations failed at {where}, and at most {percent(most)} may "
        f"(--max-failed): {why}"
    )


def ab_inconclusive(
    *,
    possible: str,
    allowed: float,
    change: Finding,
    next: Finding,
    few: bool = False,
) -> str:
    return (
        f"INCONCLUSIVE: {possible}{'' if few else ' (the verdict uses a wider interval)'}; "
        f"{percent(allowed)} is allowed. {capital(change.text)}. {next.text}"
    )


def ab_undecided(
    *,
    metric: str,
    ratio: float,
    pairs: int,
    low: float | None = None,
    high: float | None = None,
    where: str | None = None,
) -> str:
    low_part = f"{signed(low)} to {signed(high)}, " if low is not None and high is not None else ""
    return (
        f"Undecided: so far {metric} {signed(ratio)} ({low_part}{plural(pairs, 'pair')}). That is too "
        "little for a conclusion."
    )


def ab_nothing() -> str:
    return "Undecided: there is no valid pair."


def ab_too_few(*, fewest: int) -> str:
    return f"Too few pairs for a verdict: use a longer --max-time, for {plural(fewest, 'pair')} or more."


def ab_near() -> str:
    return "The change is near the limit, where no number of pairs can decide: use another --max-drop."


def ab_more_pairs(*, pairs: int, options: str | None = None) -> str:
    options_part = f" ({options})" if options else ""
    return f"About {plural(pairs, 'pair')} would decide it if this result persists{options_part}."


def ab_longer_slices(*, pairs: int, duration_s: float | None = None) -> str:
    duration_s_part = f" (--duration {format_duration(duration_s)})" if duration_s is not None else ""
    return (
        f"About {plural(pairs, 'pair')} would decide it if this result persists: use longer "
        f"slices{duration_s_part}."
    )


def ab_noisy(
    *,
    scatter: float,
    pairs: int | None = None,
    options: str | None = None,
    duration_s: float | None = None,
) -> str:
    options_part = f" ({options})" if options else ""
    pairs_part = (
        (f" If B equals A, about {plural(pairs, 'pair')} would show it{options_part}.")
        if pairs is not None
        else ""
    )
    duration_s_part = f" (--duration {format_duration(duration_s)})" if duration_s is not None else ""
    return (
        f"The pairs vary too much: half of them are {percent(scatter)} or more from the "
        f"estimate.{pairs_part} Use longer slices{duration_s_part}."
    )


def limit(*, holds: int, promise: str, breaks: int, about: int) -> str:
    return (
        f"Holds {whole(holds)}/s: most windows keep {promise}. Does not hold {whole(breaks)}/s. The limit "
        f"is about {whole(about)}/s."
    )


def limit_holds(*, holds: int, promise: str, highest: int) -> str:
    return (
        f"Holds {whole(holds)}/s: most windows keep {promise}. No rate up to {whole(highest)}/s is known "
        "to miss this."
    )


def limit_breaks(*, breaks: int, promise: str, lowest: int) -> str:
    return (
        f"Does not hold {whole(breaks)}/s: most windows miss {promise}. No rate down to {whole(lowest)}/s "
        "is known to hold."
    )


def limit_breaks_all(*, breaks: int, promise: str, lowest: int | None = None) -> str:
    return (
        f"Does not hold {whole(breaks)}/s: most windows miss {promise}. Less than one operation per "
        "second was not tried."
    )


def limit_unknown(
    *,
    promise: str,
    none: bool = False,
    kept: Finding | None = None,
    broken: Finding | None = None,
    next: str | None = None,
) -> str:
    kept_part = f": {kept.text}" if kept else ""
    broken_part = f", {broken.text}" if broken else ""
    next_part = f" Measure longer: {next}." if next else ""
    return (
        f"Cannot tell which rate holds {promise}{': no window was judged' if none else ''}"
        f"{kept_part}{broken_part}.{next_part}"
    )


def limit_rate(*, rate: int, held: int, windows: int) -> str:
    return f"at {whole(rate)}/s {whole(held)} of {plural(windows, 'window')} kept it"


def limit_ended(*, reason: str) -> str:
    return f"It ended early: {reason}."


def limit_judged(*, windows: int, fewest: int) -> str:
    return f"Judged: {plural(windows, 'window')} of at least {plural(fewest, 'operation')}."


def limit_harness_late(*, windows: int, share: float) -> str:
    return (
        f"{plural(windows, 'window')} not judged: the harness itself began operations late, by more than "
        f"{percent(share)} of the promise. Use fewer processes or a looser promise."
    )


def limit_too_few(*, windows: int, name: str, enough: int) -> str:
    return (
        f"{plural(windows, 'window')} not judged: {name} is judged from at least "
        f"{plural(enough, 'operation')}. Use a longer --duration."
    )
