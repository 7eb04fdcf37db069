"""The sentences of searches for settings and of presets, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.report.study_results import Gain
from sqlstress.show.phrases import Phrase

_OPTIONS = "--wal-autocheckpoint 10000"
_GAIN = Gain(1.31, 1.22, 1.40, 12)
_MORE = "Use --max-time {longer} or a quieter machine."

PHRASES = {
    "tune-better": Phrase(
        "Better: {options} reaches {gain:estimate} the default ({gain:interval}) in {pairs:plural fresh "
        "pair}.",
        options=_OPTIONS,
        gain=_GAIN,
        pairs=12,
    ),
    "tune-equal": Phrase(
        "The default is as good. The best found, {options}, differs by less than {share:percent} "
        "({gain:interval} times, {pairs:plural fresh pair}).",
        options=_OPTIONS,
        share=0.1,
        gain=Gain(1.01, 0.98, 1.04, 12),
        pairs=12,
    ),
    "tune-worse": Phrase(
        "The default is as good. The best found, {options}, reaches only {gain:estimate} the default "
        "({gain:interval}) in {pairs:plural fresh pair}.",
        options=_OPTIONS,
        gain=Gain(0.8, 0.7, 0.88, 12),
        pairs=12,
    ),
    "tune-unclear": Phrase(
        "Cannot tell whether anything is better than the default: the best found, {options}, reaches "
        "{gain:interval} times the default in {pairs:plural fresh pair}. " + _MORE,
        options=_OPTIONS,
        gain=Gain(1.1, 0.9, 1.3, 5),
        pairs=5,
        longer="4m",
    ),
    "tune-too-little": Phrase(
        "Cannot tell whether anything is better than the default: too little was measured. "
        "{ended_early?It ended early: let it finish.|}[" + _MORE + "]",
        ended_early=False,
        longer="4m",
    ),
    "presets-gain": Phrase(
        "{gains:semicolons}.[ Use --rounds {enough} to learn more about {unclear:commas}.]",
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
        "{name}: about equal to {base} ({gain:interval} times)",
        name="kine",
        base="SQLite's defaults",
        gain=Gain(1.01, 0.96, 1.05, 12),
    ),
    "preset-unclear": Phrase(
        "{name}: cannot tell ({gain:interval} times {base})",
        name="django",
        base="SQLite's defaults",
        gain=Gain(1.2, 0.87, 1.68, 12),
    ),
    "presets-too-few": Phrase(
        "Cannot tell anything: {rounds} is too few. Use {planned_few?--rounds 10|a longer --max-time}.",
        rounds="1 of 3 rounds",
        planned_few=True,
    ),
}
