"""Which processes are ours, so that what they take of the processors is not said to be others'."""

from __future__ import annotations

from sqlstress.environment.family import KEEPS_ACCOUNT, ChangingFamily, Family
from sqlstress.experiment import face_of
from sqlstress.options.dsn import Dsn
from sqlstress.report.case import Case


def ours(case: Case) -> Family | None:
    """Return ourselves, and all that was started for a case; None where that can't be told.

    A user's server works for us on this machine too, and nothing says which of it is for us.
    """
    if case.server and isinstance(case.server.address, Dsn) and case.server.address.is_local:
        return None
    if not face_of(case).starts_programs:
        return Family()
    return ChangingFamily() if KEEPS_ACCOUNT else None
