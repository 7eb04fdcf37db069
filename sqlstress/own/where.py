"""Options that say on which targets programs of the user's are run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlstress.options.option import chosen, either, options_of
from sqlstress.report.server import ISOLATIONS, Server, anyway_option, target_option
from sqlstress.target import for_programs, target_names

_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Where:
    """What they say."""

    target: tuple[str, ...] | None = target_option(target_names(for_programs()))
    anyway: bool = anyway_option()
    server: Server = _UNSAID
    """What is said of a server."""


NOWHERE = Where()
_OTHERWISE: dict[str, dict[str, Any]] = {
    "isolation": {
        "default": None,
        "help": f"What transactions begin with: {either(ISOLATIONS)}; as your server has it if not given.",
    }
}
"""What options mean here, where others connect."""
WHERE = (
    *chosen(options_of(Where), "target"),
    *(replace(one, **_OTHERWISE.get(one.name, {})) for one in chosen(options_of(Server))),
    *chosen(options_of(Where), "anyway"),
)
