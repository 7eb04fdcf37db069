"""How programs of the user's are told where the data lies, whatever they open it with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from sqlstress.options.dsn import UNSHOWN


class Directions(NamedTuple):
    """How a program of the user's finds the data."""

    address: str
    """What it opens: the path of a file, or a URL."""
    variables: Mapping[str, str | None]
    """Of its environment, what its libraries look for there; None: that must not be there."""
    secret: str = ""
    """What of it may neither be shown nor saved, whoever says it."""

    def hidden(self, text: str) -> str:
        """Return a text of a program's without the secret."""
        return text.replace(self.secret, UNSHOWN) if self.secret else text


class Directs(Protocol):
    """A package of targets that programs of the user's can be told of: its module has this too."""

    def stand_in(self, folder: Path) -> Directions:
        """Return directions to nothing, for a program that is only looked at.

        `folder` is an empty one of ours.
        """
