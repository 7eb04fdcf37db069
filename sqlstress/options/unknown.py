"""What stands for the options of an experiment that is not known."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """What a case says that belongs to an experiment of another version: kept, and not understood."""

    keys: str = "{}"
    """The keys of the case that none of ours has, as JSON."""

    def said(self) -> dict[str, str]:
        """Return what each key says, as JSON."""
        return {name: json.dumps(value) for name, value in json.loads(self.keys).items()}
