"""The sentences of searches for settings and of presets, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

_MORE = "Use --max-time {longer} or a quieter machine."

PHRASES = {
    "tune-better": Phrase(
        "Better: {options} reaches {gain:estimate} the default ({gain:interval}) in {pairs:plural fresh "
        "pair}."
    ),
    "tune-equal": Phrase(
        "The default is as good. The best found, {options}, differs by less than {share:percent} "
        "({gain:interval} times, {pairs:plural fresh pair})."
    ),
    "tune-worse": Phrase(
        "The default is as good. The best found, {options}, reaches only {gain:estimate} the default "
        "({gain:interval}) in {pairs:plural fresh pair}."
    ),
    "tune-unclear": Phrase(
        "Cannot tell whether anything is better than the default: the best found, {options}, reaches "
        "{gain:interval} times the default in {pairs:plural fresh pair}. " + _MORE
    ),
    "tune-too-little": Phrase(
        "Cannot tell whether anything is better than the default: too little was measured. "
        "{ended_early?It ended early: let it finish.|}[" + _MORE + "]"
    ),
    "presets-gain": Phrase(
        "{gains:semicolons}.[ Use --rounds {enough} to learn more about {unclear:commas}.]"
    ),
    "preset-gains": Phrase("{name}: {gain:estimate} {base} ({gain:interval})"),
    "preset-equal": Phrase("{name}: about equal to {base} ({gain:interval} times)"),
    "preset-unclear": Phrase("{name}: cannot tell ({gain:interval} times {base})"),
    "presets-too-few": Phrase(
        "Cannot tell anything: {rounds} is too few. Use {planned_few?--rounds 10|a longer --max-time}."
    ),
}
