"""The sentences of searches for settings and of presets, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.report.study_results import Gain
from sqlstress.show.phrases import sampled

_GAIN = Gain(1.31, 1.22, 1.40, 12)
_MORE = "Use --max-time {longer} or a quieter machine."

PHRASES = sampled(
    {
        "tune-better": "Better: {options} reaches {gain:estimate} the default ({gain:interval}) in "
        "{pairs:plural fresh pair}.",
        "tune-equal": "The default is as good. The best found, {options}, differs by less than "
        "{share:percent} ({gain:interval} times, {pairs:plural fresh pair}).",
        "tune-worse": "The default is as good. The best found, {options}, reaches only {gain:estimate} the "
        "default ({gain:interval}) in {pairs:plural fresh pair}.",
        "tune-unclear": "Cannot tell whether anything is better than the default: the best found, {options}, "
        "reaches {gain:interval} times the default in {pairs:plural fresh pair}. " + _MORE,
        "tune-too-little": "Cannot tell whether anything is better than the default: too little was "
        "measured. {ended_early?It ended early: let it finish.|}[" + _MORE + "]",
        "presets-gain": "{gains:semicolons}.[ Use --rounds {enough} to learn more about {unclear:commas}.]",
        "preset-gains": "{name}: {gain:estimate} {base} ({gain:interval})",
        "preset-equal": "{name}: about equal to {base} ({gain:interval} times)",
        "preset-unclear": "{name}: cannot tell ({gain:interval} times {base})",
        "presets-too-few": "Cannot tell anything: {rounds} is too few. Use {planned_few?--rounds 10|a longer "
        "--max-time}.",
    },
    options="--wal-autocheckpoint 10000",
    gain=_GAIN,
    pairs=12,
    longer="4m",
    ended_early=False,
    gains=(Finding("preset-gains", name="rails", base="SQLite's defaults", gain=_GAIN),),
    unclear=("django",),
    enough=40,
    name="rails",
    base="SQLite's defaults",
    rounds="1 of 3 rounds",
    planned_few=True,
)
