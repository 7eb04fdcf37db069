"""A meeting of hosts that load one server together: what is agreed, whatever the server is."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sqlstress.report.results import Together
    from sqlstress.system.interrupt import Pulse


INVITATION = "SQLSTRESS_TOGETHER"
"""The environment variable that tells a measurement of a fleet whom it is to meet."""


class Invitation(NamedTuple):
    """Who is to load a server together."""

    meeting: str
    """A name that no other common measurement has."""
    host: str
    """What this host is called in it."""
    asked: tuple[str, ...]
    """All hosts, this one included."""

    def text(self) -> str:
        """Return it as the environment has it."""
        return json.dumps(self._asdict())


def invitation() -> Invitation | None:
    """Return whom this process is to meet; None: it measures alone."""
    text = os.environ.get(INVITATION)
    if not text:
        return None
    said = json.loads(text)
    return Invitation(said["meeting"], said["host"], tuple(said["asked"]))


class Meeting(Protocol):
    """One host's part in it. All of it is the parent's: no worker waits for another host."""

    def expect(self, step: int) -> None:
        """Look, before a trial is prepared, whether the others have begun it already.

        Raises EnvironmentFailure where they have: what is prepared now would be load in their windows.
        """

    def start_ns(self, step: int, lead_s: float, length_s: float, pulse: Pulse) -> int:
        """Say that this host is ready, wait for the others, and return the common start, on perf_counter_ns.

        `lead_s`: how long before the start this host has to know of it. `length_s`: how long the load takes.
        Raises EnvironmentFailure where the others begin without us.
        """

    def together(self, opens_ns: int, closes_ns: int) -> Together:
        """Return what is to be known of a window that is over; its ends are on perf_counter_ns.

        Raises EnvironmentFailure where the server's clock can't be read any more.
        """
