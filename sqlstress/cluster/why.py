"""Why there is no report of a host, in a clause."""

from __future__ import annotations

from sqlstress.cluster import job
from sqlstress.display.clean import shortened
from sqlstress.errors import plainly

_LONGEST = 200
_ENDINGS = {
    job.STOPPED: "it was told to stop",
    job.TWICE: "it was asked again what it had done already, and did not do it twice",
    job.LARGE: f"its report is larger than {job.MOST_BYTES >> 20} MiB",
}


def parsed(answer: object) -> job.Answer | None:
    """Return a host's answer; None of what is none."""
    match answer:
        case (str(ending), int(code), str(said), bytes(report)):
            return ending, code, said, report
    return None


def why_no_report(answer: job.Answer, limit_s: float) -> str:
    """Return why a host's answer holds no report; "" where it holds one."""
    ending, code, said, report = answer
    if ending == job.DONE and report.strip():
        return ""
    if ending == job.DONE:
        spoken = said or "it said nothing"
        return shortened(f"it ended with exit code {code} and no report: {spoken}", _LONGEST)
    if ending == job.SLOW:
        return (
            f"it took more than {limit_s:g} s and was stopped (--limit); while another fleet measures on its "
            "machine, it waits"
        )
    return _ENDINGS.get(ending, "it ended in a way that is not known here")


def problem(error: BaseException, is_there: bool) -> str:
    """Return what an exception from a host means."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("sqlstress"):
        if error.name == "sqlstress":
            return "sqlstress is not installed there: python -m pip install sqlstress"
        return "its sqlstress is too old for a fleet: install the one that is here"
    if not is_there:
        return "it disappeared"
    return shortened(plainly(error), _LONGEST)
