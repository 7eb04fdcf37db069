"""The phrases that all share: what a report, a comparison and a fleet say, as `show.phrases` reads them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase
from sqlstress.statistics.compare import Ratio

_INTERVAL = "[ (95% interval {low:two} to {high:times})]"
_INTERVALS = "[ (95% interval{several?s from|} {low:two} to {high:times})]"

PHRASES: dict[str, Phrase] = {
    # What went wrong, and what could not be measured.
    "data-wrong": Phrase(
        "FAILED at {where}: {checks:semicolons}.",
        where="4 processes on 20 files",
        checks=(
            Finding(
                "check-failed",
                name="last writes",
                problems=2,
                checked=500,
                examples=("key 7 has no value",),
            ),
        ),
    ),
    "check-failed": Phrase(
        "{name}[, {problems}[ of {checked}] wrong][, in {failed} of {passes} passes]"
        "[ ({examples:semicolons})]",
        name="last writes",
        problems=2,
        checked=500,
        failed=1,
        passes=5,
        examples=("key 7 has no value",),
    ),
    "data-wrong-elsewhere": Phrase(
        "FAILED at {where} too: the JSON report has the counter-examples.", where="8 processes on 20 files"
    ),
    "counterexamples": Phrase(
        "{name}: {examples:semicolons}.", name="acknowledged", examples=("transaction 7 of worker 1 is gone",)
    ),
    "study-wrong": Phrase(
        "FAILED: the data is not what its processes were told it is: {example}.", example="key 7 has no value"
    ),
    "ended-early": Phrase(
        "Ended {rounds?after|early}[ {rounds}]: {reason}.",
        rounds="3 of 100 rounds",
        reason="the disk is full",
    ),
    "case-failed": Phrase(
        "Not measured at {where}: {reason}.", where="8 processes", reason="the disk is full"
    ),
    "case-incomplete": Phrase(
        "Not wholly measured at {where}: {reason}.", where="8 processes", reason="a worker died"
    ),
    "interrupted": Phrase(
        "Interrupted[ after {progress}]: what was found by then is reported.", progress="3 of 100 rounds"
    ),
    "interrupted-cases": Phrase(
        "Interrupted: {cases} of {planned} planned cases are reported, with {trials:plural trial}.",
        cases=3,
        planned=8,
        trials=12,
    ),
    # What is best.
    "highest": Phrase(
        "Too few trials to tell which is best; the highest was {rate:rounded} {unit} a second, with {where}. "
        "[Let all {repeat} passes finish][Measure with --repeat {enough}].",
        rate=5960.0,
        unit="transactions",
        where="3 processes on 20 files",
        repeat=None,
        enough=5,
    ),
    "best": Phrase(
        "Best: {about?about |}{rate:rounded}[ to {most:rounded}] {unit} a second, with {where}"
        "{equal?, which are about equal|}{unclear?, which can't be told apart|}.",
        rate=5960.0,
        most=6120.0,
        about=False,
        unit="transactions",
        where="3 and 4 processes on 20 files",
        equal=False,
        unclear=True,
    ),
    # How the total grows with processes and files.
    "still-rising": Phrase(
        "^[On {where} ]the total still rose at the most that was measured, {most:processes}: try more with "
        "--concurrency.",
        where="20 files",
        most=8,
    ),
    "plateau": Phrase(
        "^[On {where} ]more than {enough:processes} gained less than {share:percent}"
        "[, and {most:processes} reached only {fall:compared the best}]"
        "[; whether more than {unclear} gained anything can't be told].",
        where="1 file",
        enough=3,
        share=0.1,
        most=8,
        fall=Ratio(0.4, 0.34, 0.47, 5),
        unclear=2,
    ),
    "scaling-unclear": Phrase(
        "^[On {where} ][more than {less:processes} gained something; ]"
        "{anything?whether it pays to have |}more than {first:processes} "
        "{anything?can't be told|}[gained at most {most:percent}, if anything]: {noise}.",
        where="1 file",
        less=1,
        first=2,
        most=0.4,
        anything=False,
        noise=Finding("noise", passes=5, too=None, enough=12, share=0.1),
    ),
    "layouts": Phrase(
        "Compared with {base}: {others}.",
        base="1 file",
        others=(Finding("layout-gave", layout="20 files", ratio=Ratio(3.1, 2.9, 3.4, 5), processes=8),),
    ),
    "layout-gave": Phrase(
        "{layout} gave {ratio:compared as much} at {processes:processes}",
        layout="20 files",
        ratio=Ratio(3.1, 2.9, 3.4, 5),
        processes=8,
    ),
    "layout-unclear": Phrase(
        "what {layout} gave at {processes:processes} can't be told from it ({ratio} times)",
        layout="20 files",
        ratio=Ratio(1.1, 0.8, 1.4, 5),
        processes=8,
    ),
    "starvation": Phrase(
        "Starvation at {where}: [the shares were uneven (Jain's index down to {fairness:two}; 1 is equal)]"
        "{both? and |}[an operation waited up to {longest_ns:duration}]. {remedy}",
        where="8 processes on 1 file",
        fairness=0.31,
        longest_ns=3.4e9,
        both=True,
        remedy="Try fewer processes: rows, the processor or the disk are waited for.",
    ),
    # What can't be told, and what would.
    "too-few-trials": Phrase(
        "So few trials tell no difference from noise: [let all {repeat} passes finish]"
        "[measure with --repeat {enough}].",
        repeat=None,
        enough=5,
    ),
    "noise": Phrase(
        "{passes} passes are too noisy[, and so would {too} be: measure where less else is running]"
        "[. About {enough} would tell {share:percent} (--repeat {enough})]",
        passes=5,
        too=None,
        enough=12,
        share=0.1,
    ),
    "cannot-tell": Phrase(
        "[{too_few}][Why something can't be told: {noise}.]",
        too_few=None,
        noise=Finding("noise", passes=5, too=None, enough=12, share=0.1),
    ),
    # Targets side by side.
    "not-comparable": Phrase(
        "Not comparable[: what a commit of {unknown} is worth is not known]"
        "[, since a commit is not worth the same: {worths:semicolons}]."
        "{can_be_set? Where --synchronous gives them the same, measure so.|}",
        unknown=None,
        worths=(Finding("commit-worth", sides=("sqlite", "postgres"), worth="every commit synced"),),
        can_be_set=True,
    ),
    "commit-worth": Phrase(
        "{sides}: {worth?|not known}{worth}", sides=("sqlite", "postgres"), worth="every commit synced"
    ),
    "leads": Phrase(
        "[Which of {unclear} leads can't be told. {too_few}][With {worth}: {places:semicolons}.]"
        "[ {noise:capital}.]",
        unclear=None,
        too_few=None,
        worth="every commit synced",
        places=(Finding("sides-unclear", sides=("sqlite", "postgres"), where="8 processes on 1 file"),),
        noise=None,
    ),
    "side-leads": Phrase(
        "{side} leads with {where}[ ({low:two} to {high:two} times {several?the next|}[{other}])]",
        side="postgres",
        where="8 processes on 1 file",
        low=2.1,
        high=2.5,
        other="sqlite",
        several=False,
    ),
    "sides-equal": Phrase(
        "{sides} are about equal{lead? and lead|} with {where}",
        sides=("sqlite", "postgres"),
        lead=False,
        where="4 processes on 1 file",
    ),
    "sides-unclear": Phrase(
        "which of {sides} leads with {where} can't be told",
        sides=("sqlite", "postgres"),
        where="2 processes on 1 file",
    ),
    # Which value of an option does better.
    "answer": Phrase(
        "{setting} {values:semicolons}. Measured in {unit} a second[, as the mean over {places}]."
        "[ {too_few}][ {noise}.]",
        setting="synchronous",
        values=(Finding("value-gave", value="normal", base="full", times=15.0, ratio=Ratio(15, 13, 17, 5)),),
        unit="transactions",
        places="1 and 8 processes on 1 file",
        too_few=None,
        noise=None,
    ),
    "value-gave": Phrase(
        "{value}: {times:times} {base}[ ({ratio})]",
        value="normal",
        base="full",
        times=15.0,
        ratio=Ratio(15, 13, 17, 5),
    ),
    "value-equal": Phrase(
        "{value}: about equal to {base} ({ratio} times)",
        value="normal",
        base="full",
        ratio=Ratio(1.01, 0.97, 1.05, 5),
    ),
    "value-unclear": Phrase(
        "{value}: can't be told from {base} ({ratio} times)",
        value="normal",
        base="full",
        ratio=Ratio(1.1, 0.8, 1.4, 5),
    ),
    "answer-by-place": Phrase(
        "{values:semicolons}.",
        values=(
            Finding(
                "value-by-place",
                value="normal",
                most=15.0,
                where="1 process on 1 file",
                least=2.0,
                elsewhere="8 processes on 1 file",
            ),
        ),
    ),
    "value-by-place": Phrase(
        "{value} reached {most:times} at {where} but {least:times} at {elsewhere}",
        value="normal",
        most=15.0,
        where="1 process on 1 file",
        least=2.0,
        elsewhere="8 processes on 1 file",
    ),
    # How far the figures can be trusted.
    "proof-ok": Phrase(
        "Proved in part at {where} ({checks})[: {note}].",
        where="8 processes",
        checks=("rows",),
        note="read once",
    ),
    "proof-unknown": Phrase(
        "Undecided at {where} ({checks})[: {note}].",
        where="8 processes",
        checks=("rows",),
        note="a worker died",
    ),
    "not-steady": Phrase(
        "Not steady at {where}: the second half of the window was up to {change:faster than} the first. "
        "Measure longer (--duration).",
        where="8 processes on 20 files",
        change=-0.2,
    ),
    "spread": Phrase(
        "Trials of the same case differ by up to {share:percent} ({where}).", share=0.3, where="8 processes"
    ),
    "harness-cost": Phrase(
        "The harness itself took at most {share:percent} of the processes' time (at {where}); with a store "
        "that does nothing it takes {cost_ns:duration} for each {unit}.",
        share=0.0021,
        where="2 processes on 20 files",
        cost_ns=47,
        unit="transaction",
    ),
    "proof-cost": Phrase(
        "The proof took up to {share:percent} of the window (at {where}): --verify none measures without it.",
        share=0.08,
        where="8 processes",
    ),
    # Operations that were due at a rate.
    "saturated": Phrase(
        "Saturated at {where}: {share:percent}{several? or more|} of what was due was done. "
        "{skipped?What came too late was skipped (--latency-limit), and latencies are those of the others."
        "|The queue grows as long as one looks, and latencies say for how long that was.}",
        where="8 processes on 1 file at 4,000/s",
        share=0.71,
        several=False,
        skipped=False,
    ),
    "kept-up-unclear": Phrase(
        "Whether it kept up at {where} can't be told: measure longer (--duration).",
        where="8 processes on 1 file at 2,000/s",
    ),
    "p99-level": Phrase(
        "With {where} p99 was {base_ns:duration} at {base_rate}/s; "
        "[up to {rate}/s it differed by less than {share:percent}]"
        "[whether it was higher up to {unclear_rate}/s can't be told: {noise}].",
        where="4 processes on 1 file",
        base_ns=310_000,
        base_rate=500,
        rate=2000,
        share=0.1,
        unclear_rate=None,
        noise=None,
    ),
    "p99-rises": Phrase(
        "With {where} p99 was {base_ns:duration} at {base_rate}/s, and at {rate}/s {ratio:estimate} that "
        "({ratio}).",
        where="4 processes on 1 file",
        base_ns=310_000,
        base_rate=500,
        rate=2000,
        ratio=Ratio(5.2, 4.1, 6.6, 5),
    ),
    "harness-late": Phrase(
        "The harness itself began operations late at {where}: 1% of them by {late_ns:duration} or more, "
        "where p99 is {p99_ns:duration}[ ({most})]. That is part of the latency, and no doing of the "
        "database.",
        where="4 and 8 processes on 1 file",
        late_ns=120_000,
        p99_ns=900_000,
        most="8 processes on 1 file",
    ),
    "polling-cost": Phrase(
        "Each process polled the clock for up to {share:percent} of its time, to be there when an operation "
        "was due: {processors:two} of a processor (at {where}).",
        share=0.04,
        processors=0.16,
        where="4 processes on 1 file",
    ),
    # What helps where locks are waited for.
    "try": Phrase(
        "Try {ways:or}.", ways=(Finding("way-fair", without_preset=False), Finding("way-processes"))
    ),
    "way-fair": Phrase("--busy fair{without_preset? without the preset|}", without_preset=False),
    "way-files": Phrase("more files (--buckets {files:plain})", files=20),
    "way-processes": Phrase("fewer processes"),
    "way-timeout": Phrase("a longer --busy-timeout"),
    "overloaded": Phrase("Nothing here waits for the write lock: the processor or the disk is overloaded."),
    "overloaded-server": Phrase("Try fewer processes: rows, the processor or the disk are waited for."),
    "shorter-transactions": Phrase(
        "Try shorter transactions, or fewer processes"
        "{can_be_fair?; --busy fair shows what fair waits would give|}.",
        can_be_fair=True,
    ),
    # What others in the way did to the user's own transactions.
    "read-committed": Phrase(
        "At read committed, who reads a row and then writes it overwrites what others wrote in between: "
        "SELECT ... FOR UPDATE waits for them, --isolation repeatable-read or serializable refuses."
    ),
    "transactions-refused": Phrase(
        "Transactions given up: {count}, at {where}; up to {share:percent} of all (at {most}). The server "
        "refused them for what others did meanwhile. They count in no figure: an application has to begin "
        "them again (--max-tries).",
        count=12,
        where="4 and 8 processes",
        share=0.02,
        most="8 processes",
    ),
    "refused": Phrase(
        "Refused by the server, at {where}: {refused} by a serialization failure, {locked} by a deadlock or "
        "a lock that stayed taken.",
        where="8 processes",
        refused=71,
        locked=2,
    ),
    "transactions-given-up": Phrase(
        "Transactions given up: {count}, at {where}; up to {share:percent} of all (at {most}). SQLite "
        "answered BUSY, at once or after the time-out of {timeout}: an application sees "
        '"database is locked". They count in no figure.',
        count=12,
        where="4 and 8 processes",
        share=0.02,
        most="8 processes",
        timeout="5s",
    ),
    "transactions-snapshot": Phrase(
        "BUSY_SNAPSHOT: {count}, at {where}. A transaction that has read can't wait for its turn to write: "
        "begin it with BEGIN IMMEDIATE, or begin it again as a whole.",
        count=71,
        where="8 processes",
    ),
    # Reports side by side, the first one being A.
    "compared": Phrase(
        "{claims:sentences}",
        claims=(
            Finding(
                "compared-different",
                a="A",
                b="B",
                ratios=(Finding("times-of", times=0.84, of="A", unit="transactions a second", where="4"),),
                low=0.8,
                high=0.9,
                several=False,
            ),
        ),
    ),
    "compared-different": Phrase(
        f"{{b}} reached {{ratios}}{_INTERVALS}.",
        b="B",
        ratios=(Finding("times-of", times=0.84, of="A", unit="transactions a second", where="4 processes"),),
        low=0.8,
        high=0.9,
        several=False,
    ),
    "compared-equal": Phrase(
        f"{{b}} and {{a}} are about equal {{where}}{_INTERVALS}.",
        a="A",
        b="B",
        where=(Finding("at", place="4 processes on 1 file"),),
        low=0.98,
        high=1.03,
        several=False,
    ),
    "compared-unclear": Phrase(
        f"{{b}} can't be told from {{a}} {{where}}{_INTERVALS}: measure longer, or more trials.",
        a="A",
        b="B",
        where=(Finding("in-cases", cases=12),),
        low=0.7,
        high=1.6,
        several=True,
    ),
    "compared-chance": Phrase(
        "{b} showed {ratios}, but that may be chance: measure both with --repeat {repeat}.",
        b="B",
        ratios=(Finding("times-over", low=0.8, high=1.1, of="A", unit="rows a second", cases=12),),
        repeat=5,
    ),
    "at": Phrase("at {place}", place="4 processes on 1 file"),
    "in-cases": Phrase("in {cases} cases", cases=12),
    "times-of": Phrase(
        "{times:times}[ {of}'s][ {unit}] at {where}",
        times=0.84,
        of="A",
        unit="transactions a second",
        where="4 processes on 1 file",
    ),
    "times-over": Phrase(
        "{low:two} to {high:times} {of}'s {unit}, over {cases} cases",
        low=0.8,
        high=1.1,
        of="A",
        unit="rows a second",
        cases=12,
    ),
    "reports-not-comparable": Phrase(
        "[{b} shows {ratios}][At {where} {a} shows {a_rate:rounded}[ {a_unit}] and {b_rates}], but {reasons}"
        ": that is no measure of speed.",
        a="A",
        b="B",
        ratios=None,
        where="4 processes on 1 file",
        a_rate=7450.0,
        a_unit=None,
        b_rates=Finding("rates", letter="B", rate=1140.0, unit="pairs a second"),
        reasons=("the load differs",),
    ),
    "rates": Phrase("{letter} {rate:rounded} {unit}", letter="B", rate=1140.0, unit="pairs a second"),
    "shape": Phrase(
        "From 1 process to {where} the total went to {totals}: {growths:semicolons}.",
        where="8 processes on 1 file",
        totals=(Finding("total-in", times=0.62, of="A"), Finding("total-in", times=1.9, of="B")),
        growths=(Finding("grew-otherwise", b=("B",), a="A"),),
    ),
    "total-in": Phrase("{times:times} in {of}", times=0.62, of="A"),
    "grew-otherwise": Phrase("{b} grew otherwise than {a}", b=("B", "C"), a="A"),
    "grew-alike": Phrase("{b} grew about as {a} did", b=("B",), a="A"),
    "growth-unclear": Phrase(
        "the trials differ too much to tell whether {b} grew otherwise than {a}", b=("B",), a="A"
    ),
    "growth-too-few": Phrase("too few trials to tell whether {b} grew otherwise than {a}", b=("B",), a="A"),
    "arm-failed": Phrase(
        "{arm}: {share:percent} of the operations failed: {why}.",
        arm="B",
        share=0.03,
        why="the lock was not had in time",
    ),
    # A fleet: what the reports of many hosts say.
    "host-wrong-data": Phrase(
        "FAILED on {host}: the data is not what its workers were told it is, in {cases:plural case}: "
        "{example}. It has no figure there.",
        host="build-7",
        cases=2,
        example="key 7 has no value",
    ),
    "hosts-differ": Phrase(
        f"At {{where}} the best host, {{best}}, reached {{ratio:times}}{_INTERVAL} what the worst, {{worst}},"
        " did: {most:rounded} and {least:rounded} {unit}.",
        where="8 processes on 1 file",
        best="build-7",
        worst="build-2",
        ratio=2.1,
        low=1.9,
        high=2.3,
        most=9210.0,
        least=4390.0,
        unit="transactions a second",
    ),
    "hosts-equal": Phrase(
        f"At {{where}} all {{hosts}} hosts are about equal{_INTERVAL}: {{most:rounded}} and "
        "{least:rounded} {unit} at the ends.",
        where="8 processes on 1 file",
        hosts=4,
        low=0.98,
        high=1.04,
        most=9210.0,
        least=9100.0,
        unit="transactions a second",
    ),
    "hosts-unclear": Phrase(
        "At {where} the best host, {best}, and the worst, {worst}, showed {most:rounded} and "
        "{least:rounded} {unit}, but whether hosts differ can't be told"
        f"{_INTERVAL}[ from so few trials: measure each with --repeat {{repeat}}]"
        "{longer?: measure longer, or more trials|}.",
        where="8 processes on 1 file",
        best="build-7",
        worst="build-2",
        most=9210.0,
        least=8100.0,
        unit="transactions a second",
        low=0.8,
        high=1.4,
        repeat=None,
        longer=True,
    ),
    "hosts-slower": Phrase(
        "Slower than the median host, {median}, at {where}: {hosts}.",
        median="build-3",
        where="8 processes on 1 file",
        hosts=(Finding("host-times", host="build-2", times=0.6),),
    ),
    "hosts-faster": Phrase(
        "Faster than the median host, {median}, at {where}: {hosts}.",
        median="build-3",
        where="8 processes on 1 file",
        hosts=(Finding("host-times", host="build-7", times=1.6),),
    ),
    "host-times": Phrase("{host} ({times:times})", host="build-7", times=1.6),
    "host-unlike": Phrase(
        "{host} differs from most hosts in {facts:semicolons}.",
        host="build-2",
        facts=(Finding("fact-unlike", subject="file system", value="xfs", usual="ext4"),),
    ),
    "host-unlike-unknown": Phrase(
        "{host} differs from most in its figures, and in nothing that reports tell.", host="build-2"
    ),
    "fact-unlike": Phrase(
        "{subject}: {value}, of most {usual}", subject="file system", value="xfs", usual="ext4"
    ),
    "sync-unlike": Phrase(
        "what a sync costs: {own_ns:ms} ms, of the median host {usual_ns:ms}", own_ns=4e6, usual_ns=3e5
    ),
    "hosts-not-comparable": Phrase(
        "NOT COMPARABLE with the others: {hosts}: {reasons}.",
        hosts=("build-2",),
        reasons=(Finding("term-differs", subject="the load", value="batch 10", usual="batch 1"),),
    ),
    "term-unknown": Phrase("{subject} is not known", subject="durability"),
    "term-differs": Phrase(
        "{subject} is {value?|not known}{value}; of the others it is {usual?|not known}{usual}",
        subject="load",
        value="batch 10",
        usual=None,
    ),
    "cheaper-sync-more": Phrase(
        "Hosts whose sync costs less reached more, over {hosts:plain} hosts, at {where} "
        "(Kendall's tau {tau:fixed 2}). That it is why is not shown.",
        hosts=9,
        where="8 processes on 1 file",
        tau=-0.81,
    ),
    "dearer-sync-more": Phrase(
        "Hosts whose sync costs more reached more, over {hosts:plain} hosts, at {where} "
        "(Kendall's tau {tau:fixed 2}): something else tells them apart.",
        hosts=9,
        where="8 processes on 1 file",
        tau=0.81,
    ),
    "sync-unclear": Phrase(
        "Whether hosts with a cheaper sync reached more can't be told over {hosts:plain} hosts, at {where} "
        "(Kendall's tau {tau:fixed 2}).",
        hosts=9,
        where="8 processes on 1 file",
        tau=-0.2,
    ),
    "joint-total": Phrase(
        "TOTAL of [{took_part:plain} of ]{hosts:plural host} on {server}, with {where} each: "
        "{rate:rounded} {unit}[ ({lowest:rounded} to {highest:rounded} in {trials:plain} trials)], "
        "±{off:percent} by windows and clocks. Their windows were open together for {common_s:fixed 4} s of "
        "{window_s:seconds}, and the clocks are known within {clocks_ns:duration}.",
        took_part=None,
        hosts=3,
        server="db.example:5432",
        where="8 processes",
        rate=12_900.0,
        unit="transactions a second",
        lowest=12_400.0,
        highest=13_100.0,
        trials=3,
        off=0.004,
        common_s=1.9968,
        window_s=2.0,
        clocks_ns=180_000,
    ),
    "joint-none": Phrase(
        "There is no total of {hosts:plural host}: no windows of theirs were the same.", hosts=3
    ),
}
"""Code of a finding → its sentence, of those that no single experiment owns."""
