"""The phrases that all share: what a report and a comparison say, as `show.phrases` reads them."""

from __future__ import annotations

from sqlstress.show.phrases import ASIDE, GRAVE, Phrase

_INTERVALS = "[ (95% interval{several?s from|} {low:two} to {high:times})]"

_CHANGE = "{metric} {ratio:signed} ([{low:signed} to {high:signed}, ]{pairs:plural pair})"

_LEAD = "{failed?Probable cause|Suspicion}{held?, although every check passed,|}"
_BOTH = "First {first}[ ({first_at})], then {then}[ ({then_at})]"

PHRASES: dict[str, Phrase] = {
    # What went wrong, and what could not be measured.
    "data-wrong": Phrase("FAILED at {where}: {checks:semicolons}.", rank=GRAVE),
    "check-failed": Phrase(
        "{name}[, {problems}[ of {checked}] wrong][, in {failed} of {passes:plural pass}]"
        "[ ({examples:semicolons})]"
    ),
    "data-wrong-elsewhere": Phrase(
        "Also FAILED at {where}; the JSON report has the counter-examples.", rank=GRAVE
    ),
    "counterexamples": Phrase("{name}: {examples:semicolons}."),
    "study-wrong": Phrase("FAILED: the data is wrong: {example}.", rank=GRAVE),
    "ended-early": Phrase("Ended {rounds?after|early}[ {rounds}]: {reason}.", rank=GRAVE),
    "case-failed": Phrase("Not measured at {where}: {reason}.", rank=GRAVE),
    "case-incomplete": Phrase("Only partly measured at {where}: {reason}.", rank=GRAVE),
    "interrupted": Phrase("Interrupted[ after {progress}]. The results so far are shown.", rank=GRAVE),
    "interrupted-trials": Phrase("Interrupted after {trials} of {planned:plural trial}.", rank=GRAVE),
    "interrupted-cases": Phrase(
        "Interrupted: {trials:plural trial} of {cases} of {planned:plural planned case} are shown.",
        rank=GRAVE,
    ),
    "stopped-at-wrong-data": Phrase(
        "Stopped at the first wrong data, after {trials} of {planned:plural trial}[; not measured: "
        "{left_out}]. Use --keep-going to measure the rest."
    ),
    # What is best.
    "highest": Phrase(
        "Highest: {rate:rounded} {unit} per second with {where}. Too few trials to tell which is best: "
        "[let all {repeat:plural pass} finish][use --repeat {enough} or more]."
    ),
    "best": Phrase(
        "{unclear?No clear best|Best}: {about?about |}{rate:rounded}[ to {most:rounded}] {unit} per second "
        "with {where}{equal? (about equal)|}."
    ),
    # How the total grows with processes and buckets.
    "still-rising": Phrase(
        "^[On {where}, ]throughput still rises at {most:processes}, the most measured: try more with "
        "--concurrency."
    ),
    "plateau": Phrase(
        "^[On {where}, ]any gain beyond {enough:processes} is below {share:percent}[, and "
        "{most:processes} reach only {fall:compared the best}][. Cannot tell whether throughput rises "
        "beyond {unclear:processes}]."
    ),
    "scaling-unclear": Phrase(
        "^[On {where}, ][throughput rises beyond {less:processes}; ]{anything?cannot tell whether "
        "throughput rises|any gain} beyond {first:processes}[ is at most {most:percent}]. "
        "{noise:capital}."
    ),
    "layouts": Phrase("Compared with {base}: {others}."),
    "layout-gave": Phrase("{layout} gave {ratio:compared as much} at {processes:processes}"),
    "layout-unclear": Phrase(
        "cannot tell whether {layout} gave more at {processes:processes} ({ratio} times)"
    ),
    "layout-waits": Phrase(
        "With {layout} instead of {base} at {processes:processes},[ the longest wait {longer?rose|fell} from "
        "{wait_before_ns:duration} to {wait_ns:duration}][{both?. Fairness| fairness} {fairer?rose|fell} "
        "from {fairness_before:two} to {fairness:two}]."
    ),
    "waits": Phrase(
        "From {least:processes} to {processes},[ the longest wait {longer?rose|fell} from "
        "{wait_before_ns:duration} to {wait_ns:duration}][{both?. Fairness| fairness} {fairer?rose|fell} "
        "from {fairness_before:two} to {fairness:two}]."
    ),
    "starvation": Phrase(
        "Starvation at {where}: [shares were uneven (fairness down to {fairness:two}; 1 is equal)]{both? "
        "and |}[the longest wait was {longest_ns:duration}].[ {remedy}]"
    ),
    # What can't be told, and what would.
    "too-few-trials": Phrase(
        "Too few trials to tell a difference from noise: [let all {repeat:plural pass} finish][use --repeat "
        "{enough} or more]."
    ),
    "noise": Phrase(
        "{passes:plural pass} cannot show a difference of {share:percent}[, nor could {too}][: use "
        "--repeat {enough}]"
    ),
    "cannot-tell": Phrase('[{too_few}][Reason for "cannot tell": {noise}.]'),
    # Targets side by side.
    "not-comparable": Phrase(
        "Not comparable[: the durability of {unknown} is not known][: commits differ in durability "
        "({worths:semicolons})].{can_be_set? Choose a --synchronous that gives all the same durability.|}"
    ),
    "commit-worth": Phrase("{sides}: {worth?|not known}{worth}"),
    "leads": Phrase(
        "[Cannot tell which of {unclear} leads. {too_few}][With {worth}: {places:semicolons}.][ "
        "{noise:capital}.]"
    ),
    "side-leads": Phrase(
        "{side} leads with {where}[ ({low:two} to {high:two} times {several?the next|}[{other}])]"
    ),
    "sides-equal": Phrase("{sides} are about equal{lead? and lead|} with {where}"),
    "sides-unclear": Phrase("cannot tell which of {sides} leads with {where}"),
    # Which value of an option does better.
    "answer": Phrase(
        "{setting}: {values:semicolons}. Compared in {unit} per second[, as the mean over {places}].[ "
        "{too_few}][ {noise}.]"
    ),
    "value-gave": Phrase("{value} reached {times:times} {base}[ ({ratio})]"),
    "value-equal": Phrase("{value} is about equal to {base} ({ratio} times)"),
    "value-unclear": Phrase("cannot tell whether {value} differs from {base} ({ratio} times)"),
    "answer-by-place": Phrase("{values:semicolons}."),
    "value-by-place": Phrase("{value} reached {most:times} at {where} but {least:times} at {elsewhere}"),
    # How far the figures can be trusted.
    "proof-ok": Phrase("Partly verified at {where} ({checks})[: {note}]."),
    "proof-unknown": Phrase("Could not be verified at {where} ({checks})[: {note}].", rank=GRAVE),
    "not-steady": Phrase(
        "Not steady at {where}: the second half of the window was up to {change:faster than} the first. "
        "Use a longer --duration."
    ),
    "spread": Phrase("Trials of the same case differ by up to {share:percent} ({where}).", rank=ASIDE),
    "harness-cost": Phrase(
        "Harness overhead: at most {share:percent} of worker time (at {where}); {cost_ns:duration} per "
        "{unit} with a store that does nothing.",
        rank=ASIDE,
    ),
    "proof-cost": Phrase(
        "Verification took up to {share:percent} of the window (at {where}). Use --verify none to measure "
        "without it.",
        rank=ASIDE,
    ),
    # What others did to a measurement, which a reader must know before any figure.
    "others": Phrase(
        "[{stolen?Other guests of the hypervisor|Other programs} took up to {processors:percent} of the "
        "processors {processors_where}. ][Other programs kept the disk busy up to {disk:percent} of the time "
        "{disk_where}. ]Measure again on a quieter machine."
    ),
    "throttled": Phrase("Processors were slowed down for heat {where}: let them cool, then go on."),
    "quota-throttled": Phrase(
        "The CPU quota of {cores} cores stopped the processes in up to {share:percent} of its periods[ "
        "(for {stopped_ns:duration} in all)] {where}. Rates and waits are limited by the quota. Raise "
        "it, or use fewer processes."
    ),
    "sync-changed": Phrase(
        "A sync took {before_ns:ms} ms before and {after_ns:ms} ms after the measurement (two samples "
        "each): the disk became at least {times:times} as {slower?slow|fast}. These figures mix both "
        "speeds. Measure again before you compare them with another run."
    ),
    "throughout": Phrase("throughout"),
    "in-some-cases": Phrase("in {cases:whole} of {measured:plural case}"),
    # Operations that were due at a rate.
    "saturated": Phrase(
        "Saturated at {where}: {share:percent}{several? or more|} of the due operations were done. "
        "{skipped?Operations that were too late were skipped (--latency-limit); latencies cover the "
        "others.|The queue keeps growing, so latencies depend on the length of the window.}"
    ),
    "kept-up-unclear": Phrase("Cannot tell whether {where} kept up: use a longer --duration."),
    "p99-level": Phrase(
        "With {where}, p99 was {base_ns:duration} at {base_rate}/s. [Up to {rate}/s it differs by less "
        "than {share:percent}][Cannot tell whether it is higher at rates up to "
        "{unclear_rate}/s: {noise}]."
    ),
    "p99-rises": Phrase(
        "With {where}, p99 was {base_ns:duration} at {base_rate}/s and {ratio:estimate} that at {rate}/s "
        "({ratio})."
    ),
    "harness-late": Phrase(
        "At {where}, sqlstress itself started 1% of the operations at least {late_ns:duration} late. The "
        "latencies include this delay, which the database did not cause: p99 is {p99_ns:duration}[ ({most})]."
    ),
    "polling-cost": Phrase(
        "Polling the clock took up to {share:percent} of each process's time, {processors:two} processors "
        "in all (at {where}). It lets operations start on time.",
        rank=ASIDE,
    ),
    # What helps where locks are waited for.
    "try": Phrase("Try {ways:or}."),
    "way-files": Phrase("more buckets (--buckets {files:plain})"),
    "way-processes": Phrase("fewer processes"),
    "way-quota": Phrase("a higher CPU quota"),
    "way-timeout": Phrase("a longer --busy-timeout"),
    "shorter-transactions": Phrase(
        "One transaction kept the write lock for {longest_ns:duration}: try shorter transactions."
    ),
    # What is suspicious in the statements of the user's own transactions.
    "read-outside": Phrase(
        f"{_LEAD} of a lost update: {{transaction}} reads {{table}} outside of the transaction that writes "
        f"it. {_BOTH}. Another process can write in between. Read after BEGIN IMMEDIATE, or let one "
        "statement read and write.",
    ),
    "copy-of-read-outside": Phrase(
        f"{_LEAD} of a stale copy: {{transaction}} writes {{table}} from what it has read outside of that "
        f"transaction. {_BOTH}. Another process can change the source in between. Read it after BEGIN "
        "IMMEDIATE.",
    ),
    "guarded-by-stale-read": Phrase(
        f"{_LEAD} of a check that no longer holds: {{transaction}} checks what it has read of {{table}} "
        f"outside of the transaction that writes it. {_BOTH}. Another process can write in between. Repeat "
        "the condition in the WHERE of the write and look at its row count, or read after BEGIN IMMEDIATE.",
    ),
    "maybe-guarded-by-stale-read": Phrase(
        f"{{transaction}} reads {{table}} outside of the transaction that writes it. {_BOTH}. SQLite "
        "computes the new value, so no update is lost. But if the code checks first what it has read, such "
        "as a limit, repeat the condition in the WHERE of the write.",
    ),
    "connection-mixed": Phrase(
        f"{_LEAD} of half transactions: threads or tasks of {{transaction}} share a connection, and one "
        f"writes in the transaction of another. {_BOTH}. Use a lock for each transaction, or a connection "
        "for each task.",
    ),
    "connection-forked": Phrase(
        f"{_LEAD} of corruption: {{transaction}} uses a connection in a process that was forked after it "
        "was opened[: {first}][ ({first_at})]. Open a connection in each process.",
    ),
    "not-rehearsed": Phrase("The statements[ of {transactions}] were not examined for suspicions: {why}."),
    "suspicions-more": Phrase("The JSON report has {count:plural more suspicion}."),
    "deferred-upgrade": Phrase(
        f"Transactions begin DEFERRED, read, and then write.[ {_BOTH}.] If another process wrote meanwhile, "
        'SQLite returns "database is locked" at once, whatever the timeout is. Use BEGIN IMMEDIATE.',
    ),
    # What others in the way did to the user's own transactions.
    "read-committed": Phrase(
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        "between. Use SELECT ... FOR UPDATE to wait for them, or --isolation repeatable-read or "
        "serializable to refuse them."
    ),
    "transactions-refused": Phrase(
        "At {where}, {count:plural transaction} gave up. That is {most?up to |}{share:percent} of all[ "
        "(at {most})]. The server refused them because of concurrent transactions. The figures leave "
        "them out; an application must retry them (--max-tries)."
    ),
    "refused": Phrase(
        "Refused by the server at {where}: {refused} by a serialization failure, {locked} by a deadlock "
        "or an unavailable lock."
    ),
    # Who held the write lock, as samples saw it.
    "held-for": Phrase("{ns:duration}"),
    "held-below": Phrase("{ns:duration}"),
    "long-write": Phrase(
        "^{process} {lasts?has kept|kept} the write lock for {longest_ns:duration} in one transaction. "
        'Writers with a shorter busy timeout get "database is locked".'
    ),
    "lock-holder": Phrase("at {where}, {program}"),
    "lock-not-seen": Phrase(
        "Nobody was seen with the write lock at {where}, in {samples:plural sample}: it was held too "
        "briefly, or not at all."
    ),
    "lock-watch-ended": Phrase("The write lock was not watched to the end at {where}: {reason}."),
    "transactions-given-up": Phrase(
        '{count:plural transaction} failed with "database is locked" at {where}[, {how}]. That is {most?up '
        "to |}{share:percent} of all[ (at {most})][; by transaction: {shares}]. The figures leave them out."
        "[ {cure}]",
        rank=GRAVE,
    ),
    # The time until operations failed, as a part of a sentence.
    "failed-at-once": Phrase(
        "at once (median {median_ns:duration}, longest {longest_ns:duration}; the timeout of {timeout} was "
        "not waited for)"
    ),
    "failed-after-timeout": Phrase(
        "after the whole timeout of {timeout} (median {median_ns:duration}, longest {longest_ns:duration})"
    ),
    "failed-without-timeout": Phrase(
        "at once, without a busy timeout (median {median_ns:duration}, longest {longest_ns:duration})"
    ),
    "failed-before-timeout": Phrase(
        "before the timeout of {timeout} ended (median {median_ns:duration}, longest {longest_ns:duration})"
    ),
    "failed-mixed": Phrase(
        "{whole} of {count} after the whole timeout of {timeout}, the others earlier (median "
        "{median_ns:duration}, longest {longest_ns:duration})"
    ),
    "failed-after": Phrase("after {median_ns:duration} (median; longest {longest_ns:duration})"),
    "kind-share": Phrase("{kind} {share:percent}"),
    "too-many-failed": Phrase(
        "At {where}, {several?up to |}{share:percent} of the operations failed, and at most {most} may "
        "(--max-failed). {several?These rows are|This row is} not compared with others.",
        rank=GRAVE,
    ),
    "cure-timeout": Phrase("Try a longer timeout, or find what holds the lock for so long."),
    "cure-set-timeout": Phrase("Set a busy timeout on every connection."),
    "cure-immediate": Phrase(
        "A transaction reads before it writes, so SQLite does not wait: use BEGIN IMMEDIATE."
    ),
    "cure-no-timeout": Phrase("A longer timeout does not help."),
    "transactions-snapshot": Phrase(
        "BUSY_SNAPSHOT at {where}: {count}. A transaction that has read cannot wait for its turn to "
        "write: use BEGIN IMMEDIATE, or retry the whole transaction."
    ),
    # Reports side by side, the first one being A.
    "compared": Phrase("{claims:sentences}"),
    "compared-different": Phrase(f"{{b}} reached {{ratios}}{_INTERVALS}."),
    "compared-equal": Phrase(f"{{b}} and {{a}} are about equal {{where}}{_INTERVALS}."),
    "compared-unclear": Phrase(
        f"Cannot tell {{b}} from {{a}} {{where}}{_INTERVALS}: measure longer or use more trials."
    ),
    "compared-chance": Phrase("{b} showed {ratios}. That may be chance: use --repeat {repeat} for both."),
    "at": Phrase("at {place}"),
    "in-cases": Phrase("in {cases:plural case}"),
    "times-of": Phrase("{times:times}[ {of}'s][ {unit}] at {where}"),
    "times-over": Phrase("{low:two} to {high:times} {of}'s {unit}, over {cases:plural case}"),
    "reports-not-comparable": Phrase(
        "[{b} shows {ratios}][At {where}, {a} shows {a_rate:rounded}[ {a_unit}] and {b_rates}]. Do not "
        "compare their speed: {reasons}."
    ),
    "rates": Phrase("{letter} {rate:rounded} {unit}"),
    "shape": Phrase(
        "From 1 process to {where}, throughput changed by a factor of {totals}. {growths:capital}."
    ),
    "total-in": Phrase("{times:two} in {of}"),
    "grew-otherwise": Phrase("{b} grew differently from {a}"),
    "grew-alike": Phrase("{b} grew about as much as {a}"),
    "growth-unclear": Phrase(
        "cannot tell whether {b} grew differently from {a} (the trials differ too much)"
    ),
    "growth-too-few": Phrase("too few trials to tell whether {b} grew differently from {a}"),
    "arm-failed": Phrase("In {arm}, {share:percent} of the operations failed: {why}.", rank=GRAVE),
    # An A/B test: its verdict, whether B is faster, and what to do next.
    "ab-faster": Phrase(f"[{{where}} ]B is faster: {_CHANGE}"),
    "ab-slower": Phrase(f"[{{where}} ]B is slower: {_CHANGE}"),
    "ab-unclear": Phrase(f"cannot tell whether B is faster[ {{where}}]: {_CHANGE}"),
    "ab-pass": Phrase(
        "PASS: no {noun} of more than {allowed:percent}[ in the mean of {cells:plural cell}]. "
        "{change:capital}.{open? Use a smaller --max-drop to measure longer.|}"
    ),
    "ab-pass-by-estimate": Phrase(
        "PASS, but only by its estimate: {possible}[ in the mean of {cells:plural cell}]. {change:capital}."
    ),
    "ab-fail": Phrase(
        "FAIL: {changes:semicolons}. At most {allowed:percent} is allowed: find out why before you use B."
    ),
    "ab-wrong": Phrase("FAIL: {reason}. Find out why before you use any figure."),
    "ab-not-comparable": Phrase("Not comparable: {arms:semicolons}."),
    "arm-failed-too-often": Phrase(
        "in {arm}, {share:percent} of the operations failed at {where}, and at most {most:percent} may "
        "(--max-failed): {why}"
    ),
    "ab-inconclusive": Phrase(
        "INCONCLUSIVE: {possible}{few?| (the verdict uses a wider interval)}; {allowed:percent} is allowed. "
        "{change:capital}. {next}"
    ),
    "ab-undecided": Phrase(f"Undecided: so far {_CHANGE}. That is too little for a conclusion."),
    "ab-nothing": Phrase("Undecided: there is no valid pair."),
    "ab-too-few": Phrase(
        "Too few pairs for a verdict: use a longer --max-time, for {fewest:plural pair} or more."
    ),
    "ab-near": Phrase(
        "The change is near the limit, where no number of pairs can decide: use another --max-drop."
    ),
    "ab-more-pairs": Phrase(
        "About {pairs:plural pair} would decide it if this result persists[ ({options})]."
    ),
    "ab-longer-slices": Phrase(
        "About {pairs:plural pair} would decide it if this result persists: use longer slices"
        "[ (--duration {duration_s:seconds})]."
    ),
    "ab-noisy": Phrase(
        "The pairs vary too much: half of them are {scatter:percent} or more from the estimate.[ If B "
        "equals A, about {pairs:plural pair} would show it[ ({options})].] Use longer slices"
        "[ (--duration {duration_s:seconds})]."
    ),
    # A search for the highest rate: the answer, and from which windows it follows.
    "limit": Phrase(
        "Holds {holds:whole}/s: most windows keep {promise}. Does not hold {breaks:whole}/s. The limit is "
        "about {about:whole}/s."
    ),
    "limit-holds": Phrase(
        "Holds {holds:whole}/s: most windows keep {promise}. No rate up to {highest:whole}/s is "
        "known to miss this."
    ),
    "limit-breaks": Phrase(
        "Does not hold {breaks:whole}/s: most windows miss {promise}. No rate down to {lowest:whole}/s "
        "is known to hold."
    ),
    "limit-breaks-all": Phrase(
        "Does not hold {breaks:whole}/s: most windows miss {promise}. Less than one operation per second "
        "was not tried."
    ),
    "limit-unknown": Phrase(
        "Cannot tell which rate holds {promise}{none?: no window was judged|}[: {kept}][, {broken}].[ "
        "Measure longer: {next}.]"
    ),
    "limit-rate": Phrase("at {rate:whole}/s {held} of {windows:plural window} kept it"),
    "limit-ended": Phrase("It ended early: {reason}."),
    "limit-judged": Phrase("Judged: {windows:plural window} of at least {fewest:plural operation}."),
    "limit-harness-late": Phrase(
        "{windows:plural window} not judged: the harness itself began operations late, by more than "
        "{share:percent} of the promise. Use fewer processes or a looser promise."
    ),
    "limit-too-few": Phrase(
        "{windows:plural window} not judged: {name} is judged from at least {enough:plural operation}. Use a "
        "longer --duration."
    ),
}
"""Code of a finding → its sentence, of those that no single experiment owns."""
