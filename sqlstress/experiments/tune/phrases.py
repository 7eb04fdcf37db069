"""The sentences of searches for settings and of presets, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.report.study_results import Gain
from sqlstress.show.phrases import Phrase

_OPTIONS = "--wal-autocheckpoint 10000"
_GAIN = Gain(1.31, 1.22, 1.40, 12)
_MORE = "Give it more time (--max-time {longer}), or a quieter machine."

PHRASES = {
    "tune-better": Phrase(
        "Better: {options} reaches {gain:gain the default}, by {pairs:plural fresh pair}.",
        options=_OPTIONS,
        gain=_GAIN,
        pairs=12,
    ),
    "tune-equal": Phrase(
        "The default is as good: the best that was found, {options}, differs by less than {share:percent} "
        "({gain:interval} times, {pairs:plural fresh pair}).",
        options=_OPTIONS,
        share=0.1,
        gain=Gain(1.01, 0.98, 1.04, 12),
        pairs=12,
    ),
    "tune-worse": Phrase(
        "The default is as good: the best that was found, {options}, reaches {gain:gain it}, by "
        "{pairs:plural fresh pair}.",
        options=_OPTIONS,
        gain=Gain(0.8, 0.7, 0.88, 12),
        pairs=12,
    ),
    "tune-unclear": Phrase(
        "It can't be told whether anything is better than the default: the best that was found, {options}, "
        "may do {gain:interval} times as much, by {pairs:plural fresh pair}. " + _MORE,
        options=_OPTIONS,
        gain=Gain(1.1, 0.9, 1.3, 5),
        pairs=5,
        longer="4m",
    ),
    "tune-too-little": Phrase(
        "It can't be told whether anything is better than the default: too little was measured. "
        "{ended_early?It ended before its time was over: let it go on.|}[" + _MORE + "]",
        ended_early=False,
        longer="4m",
    ),
    "presets-gain": Phrase(
        "{gains:semicolons}.[ More rounds tell more of {unclear:commas}: --rounds {enough}.]",
        gains=(Finding("preset-gains", name="rails", base="SQLite's defaults", gain=_GAIN),),
        unclear=("django",),
        enough=40,
    ),
    "preset-gains": Phrase(
        "{name}: {gain:estimate} {base} ({gain:interval})",
        name="rails",
        base="SQLite's defaults",
        gain=_GAIN,
    ),
    "preset-equal": Phrase(
        "{name}: as good as {base} ({gain:interval} times)",
        name="kine",
        base="SQLite's defaults",
        gain=Gain(1.01, 0.96, 1.05, 12),
    ),
    "preset-unclear": Phrase(
        "{name}: can't be told from {base} ({gain:interval} times)",
        name="django",
        base="SQLite's defaults",
        gain=Gain(1.2, 0.87, 1.68, 12),
    ),
    "presets-too-few": Phrase(
        "Nothing can be told: {rounds} is too few. Give {planned_few?--rounds 10|it more time (--max-time)}.",
        rounds="1 of 3 rounds",
        planned_few=True,
    ),
}
